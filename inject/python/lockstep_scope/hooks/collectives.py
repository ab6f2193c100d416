# SPDX-License-Identifier: Apache-2.0

"""torch.distributed on backends that have no profiler interface, such as Gloo and MPI.

NCCL's operations are told of by NCCL itself.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Optional, Tuple

from .. import identity
from ..library import LIBRARY
from .patch import Hook, compiling
from .pending import PENDING

TOLD_BY_OTHERS = ("nccl", "rccl")
"""Backends whose operations Lockstep learns of otherwise; parts of their names."""

MAX_GROUPS = 256
"""Process groups that are followed at a time."""

# Function: as NCCL spells it; which argument says how many bytes each rank gives
# (of reduce_scatter: gets), by its position and name; the name of the root's.
_FUNCTIONS: Dict[str, Tuple[str, int, str, str]] = {
    "all_reduce": ("AllReduce", 0, "tensor", ""),
    "broadcast": ("Broadcast", 0, "tensor", "src"),
    "reduce": ("Reduce", 0, "tensor", "dst"),
    "all_gather": ("AllGather", 1, "tensor", ""),
    "all_gather_into_tensor": ("AllGather", 1, "input_tensor", ""),
    "all_gather_single": ("AllGather", 1, "input_tensor", ""),
    "gather": ("Gather", 0, "tensor", "dst"),
    "scatter": ("Scatter", 0, "tensor", "src"),
    "reduce_scatter": ("ReduceScatter", 0, "output", ""),
    "reduce_scatter_tensor": ("ReduceScatter", 0, "output", ""),
    "reduce_scatter_single": ("ReduceScatter", 0, "output_tensor", ""),
    "all_to_all": ("AlltoAll", 1, "input_tensor_list", ""),
    "all_to_all_single": ("AlltoAll", 1, "input", ""),
    "barrier": ("Barrier", -1, "", ""),
}
# Names of newer versions, that are not missing where they are not there.
_NEWER = ("all_gather_single", "reduce_scatter_single")

_DTYPES = {
    "float32": b"ncclFloat32", "float64": b"ncclFloat64", "float16": b"ncclFloat16",
    "bfloat16": b"ncclBfloat16", "int8": b"ncclInt8", "uint8": b"ncclUint8", "bool": b"ncclUint8",
    "int32": b"ncclInt32", "int64": b"ncclInt64",
}  # fmt: skip


class Groups:
    """The process groups that are followed, by the object and the kind of device."""

    def __init__(self) -> None:
        self._known: Dict[Tuple[int, str], Tuple[Any, int]] = {}

    def code(self, group: Any, device: Any) -> int:
        """Returns the group's code, 0 where it is not followed."""
        key = (id(group), device.type)
        known = self._known.get(key)
        if known is not None:
            return known[1]
        if len(self._known) >= MAX_GROUPS:
            return 0
        code = self._open(group, device)
        self._known[key] = (group, code)  # keeps the group, so that its id is nobody else's
        return code

    def _open(self, group: Any, device: Any) -> int:
        import torch.distributed as dist

        backend = group._get_backend(device).name()
        if any(other in backend.lower() for other in TOLD_BY_OTHERS):
            return 0
        ranks = dist.get_process_group_ranks(group)
        name = getattr(group, "group_name", "")
        told = f"{name} {getattr(group, 'group_desc', '')} {backend}".strip()
        digest = identity.group_hash(f"{name} {device.type}", ranks)
        return LIBRARY.group_open(digest, group.size(), group.rank(), told.encode("utf-8", "replace"))

    def close(self, group: Any = None) -> None:
        """Closes one group, or all."""
        PENDING.look()
        for key, (known, code) in list(self._known.items()):
            if group is None or known is group:
                del self._known[key]
                if code:
                    LIBRARY.group_close(code)


GROUPS = Groups()
"""The groups of this process."""


def begin(group: Any, func: bytes, tensor: Any, root: int = -1, parts: int = 1) -> int:
    """Begins a collective; returns its handle, 0 where it is not followed."""
    code = GROUPS.code(group, tensor.device)
    if code == 0:
        return 0
    size = tensor.numel() * tensor.element_size() * parts
    dtype = _DTYPES.get(str(tensor.dtype).rpartition(".")[2], b"")
    return LIBRARY.collective_begin(code, func, size, root, dtype)


class Collectives(Hook):
    """Records collectives that Python asks for, as far as their completion is known."""

    name = "collectives"
    needs = "torch"

    def install(self) -> None:
        import torch.distributed as dist

        if not dist.is_available():
            raise RuntimeError("torch.distributed is not available")
        self._dist, self._local, self._compiling = dist, threading.local(), compiling()
        for name, what in _FUNCTIONS.items():
            if name in _NEWER and not hasattr(dist, name):
                continue
            self.replace(f"torch.distributed.distributed_c10d.{name} torch.distributed.{name}", self._wrap(*what))
        places = "torch.distributed.distributed_c10d.destroy_process_group torch.distributed.destroy_process_group"
        self.replace(places, self._destroy)
        self.undo(GROUPS.close)
        self.undo(PENDING.stop)

    def _destroy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def destroy_process_group(group: Any = None) -> Any:
            default = self._dist.group.WORLD
            GROUPS.close(None if group is None or group is default else group)
            return original(group)

        return destroy_process_group

    def _wrap(self, func: str, at: int, argument: str, root: str) -> Callable[..., Any]:
        spelled = func.encode()

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                if self._compiling() or not self.active or getattr(self._local, "inside", False):
                    return original(*args, **kwargs)
                handle = self._begin(original, spelled, at, argument, root, args, kwargs)
                self._local.inside = True
                try:
                    work = original(*args, **kwargs)
                except BaseException:
                    LIBRARY.collective_end(handle)
                    raise
                finally:
                    self._local.inside = False
                _end_with(work, handle)
                return work

            return wrapper

        return wrap

    def _begin(self, original: Any, func: bytes, at: int, argument: str, root: str, args: Any, kwargs: Any) -> int:
        try:
            given = _bind(original, args, kwargs)
            group = given.get("group") or self._dist.group.WORLD
            if group is None or group is self._dist.GroupMember.NON_GROUP_MEMBER:
                return 0
            tensor: Any = given[argument] if argument else None
            parts = 1
            if isinstance(tensor, (list, tuple)):
                tensor, parts = tensor[0], len(tensor)
            if tensor is None:
                import torch

                tensor = torch.empty(0, dtype=torch.uint8)
            return begin(group, func, tensor, _root(given, root, group, self._dist), parts)
        except Exception:  # arguments that the function itself will refuse
            return 0


def _bind(original: Any, args: Any, kwargs: Any) -> Dict[str, Any]:
    names = original_names(original)
    return {**dict(zip(names, args)), **kwargs}


_names: Dict[Any, Tuple[str, ...]] = {}


def original_names(function: Any) -> Tuple[str, ...]:
    """Returns the names of a function's parameters, beneath its decorators."""
    names = _names.get(function)
    if names is None:
        import inspect

        names = _names[function] = tuple(inspect.signature(function).parameters)
    return names


def _root(given: Dict[str, Any], name: str, group: Any, dist: Any) -> int:
    if not name:
        return -1
    if given.get("group_" + name) is not None:
        return int(given["group_" + name])
    root = given.get(name)
    return dist.get_group_rank(group, root if root is not None else 0)


def _end_with(work: Any, handle: int) -> None:
    """Ends a collective when its work does."""
    if handle == 0:
        return
    if work is None:  # the call waited
        LIBRARY.collective_end(handle)
        return
    try:
        future = work.get_future()
    except Exception:  # a backend without futures: what is known is when the call returned
        LIBRARY.collective_end(handle)
        return
    PENDING.add(future, handle)
