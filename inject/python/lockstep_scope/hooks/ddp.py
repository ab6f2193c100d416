"""DistributedDataParallel reduces its buckets in C++: its communication hook tells of them."""

from __future__ import annotations

from typing import Any, Callable, Optional

from . import collectives
from .patch import Hook, compiling


class _Reducer:
    """The communication hook of one model: what the reducer does without one.

    A hook that the program registers later, as it may until the first backward,
    takes its place.
    """

    def __init__(self, group: Any) -> None:
        self.group = group
        # The reducer multiplies by this, rather than to divide by the size.
        self.factor = 1.0 / group.size()
        self.program: Optional[Callable[..., Any]] = None
        self.program_state: Any = None

    def __call__(self, state: Any, bucket: Any) -> Any:
        if self.program is not None:
            return self.program(self.program_state, bucket)
        tensor = bucket.buffer()
        handle = collectives.begin(self.group, b"AllReduce", tensor)
        tensor.mul_(self.factor)
        future = self.group.allreduce([tensor]).get_future()
        collectives.end_with(future, handle)
        return future.then(lambda done: done.value()[0])


class DataParallel(Hook):
    """Records the all-reduces of DistributedDataParallel, but for those of NCCL."""

    name = "ddp"
    needs = "torch"

    def install(self) -> None:
        self._compiling = compiling()
        model = "torch.nn.parallel.distributed.DistributedDataParallel"
        self.replace(f"{model}.__init__", self._init)
        self.replace(f"{model}.register_comm_hook", self._register)

    def _init(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(model: Any, *args: Any, **kwargs: Any) -> None:
            original(model, *args, **kwargs)
            if not self.active:
                return

            def first_forward(*_: Any) -> None:
                if not self._compiling():
                    handle.remove()
                    self._attach(model)

            handle = model.register_forward_pre_hook(first_forward)

        return __init__

    def _register(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def register_comm_hook(model: Any, state: object, hook: Callable[..., Any]) -> Any:
            ours = vars(model).get("_lockstep_reducer")
            if ours is None or ours.program is not None:
                return original(model, state, hook)
            model._check_comm_hook(hook)
            ours.program_state, ours.program = state, hook
            model._comm_hooks.append((hook, state))
            return None

        return register_comm_hook

    def _attach(self, model: Any) -> None:
        import torch.distributed as dist

        try:
            if not self.active or not _suits(model):
                return
            reducer = _Reducer(model.process_group)
            dist._register_comm_hook(model.reducer, None, _named(reducer))
            vars(model)["_lockstep_reducer"] = reducer
        except Exception:  # another version's model: it reduces as it does
            return


def _named(reducer: _Reducer) -> Callable[..., Any]:
    # The reducer asks the hook for its __qualname__.
    def lockstep(state: Any, bucket: Any) -> Any:
        return reducer(state, bucket)

    return lockstep


def _suits(model: Any) -> bool:
    """Says whether a model reduces as it does without a hook when ours is there."""
    group = model.process_group
    if collectives.GROUPS.code(group, model.device if model.device is not None else _device(model)) == 0:
        return False  # NCCL's, or no room
    if model._comm_hooks or model._get_ddp_logging_data().get("comm_hook"):
        return False
    if model.mixed_precision is not None or model._join_config.enable:
        return False
    if any(getattr(module, "sparse", False) for module in model.module.modules()):
        return False
    # Buckets that are the gradients themselves are divided, others multiplied by the
    # inverse: the same for powers of two only.
    size = group.size()
    return size & (size - 1) == 0 or not model.gradient_as_bucket_view


def _device(model: Any) -> Any:
    return next(model.parameters()).device
