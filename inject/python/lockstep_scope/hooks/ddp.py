# SPDX-License-Identifier: Apache-2.0

"""DistributedDataParallel reduces its buckets in C++: its communication hook tells of them."""

from __future__ import annotations

import weakref
from typing import Any, Callable, MutableMapping, Optional

from . import collectives
from .patch import Hook, compiling
from .pending import PENDING


class _Reducer:
    """The communication hook of one model: what the reducer does without one.

    A hook that the program registers later, as it may until the first backward,
    takes its place.
    """

    def __init__(self, owner: Hook, group: Any) -> None:
        self.owner, self.group = owner, group
        self.program: Optional[Callable[..., Any]] = None
        self.program_state: Any = None
        self.counted: Any = None
        """Under join(): what counts the ranks that have not joined yet."""

    def __call__(self, state: Any, bucket: Any) -> Any:
        if self.program is not None:
            return self.program(self.program_state, bucket)
        tensor = bucket.buffer()
        handle = collectives.begin(self.group, b"AllReduce", tensor) if self.owner.active else 0
        # The reducer multiplies by the inverse, rather than to divide.
        tensor.mul_(1.0 / self._ranks())
        future = self.group.allreduce([tensor]).get_future()
        if handle:
            PENDING.add(future, handle)
        result = future.then(_first)
        PENDING.called_back(result)
        return result

    def _ranks(self) -> int:
        if self.counted is None:
            return int(self.group.size())
        return int(self.counted.get_future().wait()[0].item())


def _first(done: Any) -> Any:
    return done.value()[0]


_REDUCERS: "MutableMapping[Any, _Reducer]" = weakref.WeakKeyDictionary()
"""Ours, by the model's reducer: copies and pickles of a model have reducers of their
own, and are what they are without us."""


class DataParallel(Hook):
    """Records the all-reduces of DistributedDataParallel, but for those of NCCL.

    A communication hook cannot be taken back. So once a model has ours, what lets it
    reduce as without us stays in place, and :meth:`stop` ends the records only.
    """

    name = "ddp"
    needs = "torch"

    def install(self) -> None:
        self._compiling = compiling()
        for reducer in list(_REDUCERS.values()):
            reducer.owner = self
        self.replace("torch.nn.parallel.distributed.DistributedDataParallel._pre_forward", self._forward)

    def _forward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def _pre_forward(model: Any, *args: Any, **kwargs: Any) -> Any:
            # Later than at its making: until then the program may register a hook.
            if not model._lazy_init_ran and not self._compiling() and self.active:
                self._attach(model)
            return original(model, *args, **kwargs)

        return _pre_forward

    def _attach(self, model: Any) -> None:
        import torch.distributed as dist

        try:
            if not _suits(model):
                return
            _stay()
            reducer = _Reducer(self, model.process_group)
            dist._register_comm_hook(model.reducer, None, _named(reducer))
            _REDUCERS[model.reducer] = reducer
        except Exception:  # another version's model: it reduces as it does
            return


def _named(reducer: _Reducer) -> Callable[..., Any]:
    # The reducer asks the hook for its __qualname__.
    def lockstep(state: Any, bucket: Any) -> Any:
        return reducer(state, bucket)

    return lockstep


_stays: Optional[Hook] = None


def _stay() -> None:
    global _stays
    if _stays is None:
        _stays = _Stays()
        _stays.start()
        if _stays.missing():
            raise RuntimeError(f"hook models: there is no {', '.join(_stays.missing())}")
    elif _stays.missing():
        raise RuntimeError("hook models: this version lacks what it takes")


class _Stays(Hook):
    """What a model with our hook needs to reduce as it does without."""

    def install(self) -> None:
        model = "torch.nn.parallel.distributed.DistributedDataParallel"
        self.replace(f"{model}.register_comm_hook", _register)
        self.replace(f"{model}._register_builtin_comm_hook", _register_builtin)
        self.replace("torch._C._distributed_c10d.Reducer._set_forward_pass_work_handle", _count)


def _register(original: Callable[..., Any]) -> Callable[..., Any]:
    def register_comm_hook(model: Any, state: object, hook: Callable[..., Any]) -> Any:
        ours = _REDUCERS.get(model.reducer)
        if ours is None or ours.program is not None:
            return original(model, state, hook)
        model._check_comm_hook(hook)
        model.logger._set_comm_hook_name(hook.__qualname__)
        model._comm_hooks.append((hook, state))
        ours.program_state, ours.program = state, hook
        return None

    return register_comm_hook


def _register_builtin(original: Callable[..., Any]) -> Callable[..., Any]:
    def _register_builtin_comm_hook(model: Any, comm_hook_type: Any) -> Any:
        ours = _REDUCERS.get(model.reducer)
        if ours is None or ours.program is not None:
            return original(model, comm_hook_type)
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        # The same in Python: those in C++ cannot be called from here.
        name = str(comm_hook_type).rpartition(".")[2]
        same = {"ALLREDUCE": default_hooks.allreduce_hook, "FP16_COMPRESS": default_hooks.fp16_compress_hook}[name]
        model.logger._set_comm_hook_name(str(comm_hook_type))
        ours.program_state, ours.program = ours.group, _awaited(same)
        return None

    return _register_builtin_comm_hook


def _awaited(hook: Callable[..., Any]) -> Callable[..., Any]:
    def awaited(state: Any, bucket: Any) -> Any:
        future = hook(state, bucket)
        PENDING.called_back(future)
        return future

    return awaited


def _count(original: Callable[..., Any]) -> Callable[..., Any]:
    def _set_forward_pass_work_handle(reducer: Any, work: Any, use_static_world_size: bool) -> Any:
        ours = _REDUCERS.get(reducer)
        if ours is not None:
            ours.counted = None if use_static_world_size else work
        return original(reducer, work, use_static_world_size)

    return _set_forward_pass_work_handle


def _suits(model: Any) -> bool:
    """Says whether a model reduces as it does without a hook when ours is there."""
    group = model.process_group
    if collectives.GROUPS.code(group, model.device if model.device is not None else _device(model)) == 0:
        return False  # NCCL's, or no room
    if model._use_python_reducer or model._comm_hooks or model._get_ddp_logging_data().get("comm_hook"):
        return False
    if model.mixed_precision is not None:
        return False
    if any(getattr(module, "sparse", False) for module in model.module.modules()):
        return False
    # Gradients that are views of their bucket are divided, others multiplied by the
    # inverse: the same for powers of two only, and join() may have any number divide.
    return group.size() <= 2 or not model.gradient_as_bucket_view


def _device(model: Any) -> Any:
    return next(model.parameters()).device
