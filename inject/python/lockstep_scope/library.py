# SPDX-License-Identifier: Apache-2.0

"""Finds and loads the Lockstep library. Source: inject/lockstep.h."""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any, Callable, Optional, Tuple

from . import elf, notes

ABI = 2
"""Version of the interface that is needed; the interface only grows."""

VARIABLES = ("LOCKSTEP_LIBRARY", "NCCL_PROFILER_PLUGIN", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH")
"""Environment variables that may hold the library's path, in this order."""

DEFAULT = "/opt/lockstep/libnccl-profiler-lockstep.so"
"""Where the library is looked for last."""


def _nothing(*_: Any) -> int:
    return 0


class Library:
    """The calls of lockstep.h; each returns 0 where there is no library."""

    path: Optional[str] = None
    problem: str = ""

    def __init__(self) -> None:
        nothing: Callable[..., Any] = _nothing
        self.step_begin = self.scope_name = self.push = self.pop = self.link = self.resumed = self.fingerprint = nothing
        self.group_open = self.group_close = nothing
        self.collective_begin = self.collective_end = nothing
        self.cupti_pause = self.cupti_resume = nothing
        self._status = nothing

    @property
    def present(self) -> bool:
        """Whether the library was loaded."""
        return self.path is not None

    def ring(self) -> str:
        """What the library says of its ring; empty without a library."""
        text = self._status()
        return text.decode("utf-8", "replace") if text else ""


def _refuse(path: str) -> str:
    """Says why a file is not to be loaded; empty where it is Lockstep's library.

    Another tool's library is not loaded only to find that it is not ours.
    """
    try:
        ours = b"lockstep_scope_begin\0" in elf.symbol_names(path)
    except OSError as error:
        return error.strerror or str(error)
    except (ValueError, struct.error) as error:
        return str(error)
    return "" if ours else "it is not Lockstep's library"


def find() -> Tuple[Optional[str], str]:
    """Returns the library's path, or None and what was looked at."""
    looked = []
    for variable in VARIABLES:
        path = os.environ.get(variable, "")
        if not path:
            continue
        # A bare name is what NCCL has the loader look for, or a word of its own.
        reason = _refuse(path) if "/" in path else "it is no path"
        if not reason:
            return path, ""
        looked.append(f"{variable}={path}: {reason}")
    reason = _refuse(DEFAULT)
    if not reason:
        return DEFAULT, ""
    looked.append(f"{DEFAULT}: {reason}")
    return None, "find library: " + "; ".join(looked)


def load() -> Library:
    """Loads the library. Never raises: what went wrong is in ``problem``."""
    library = Library()
    path, library.problem = find()
    if path is None:
        return library
    try:
        # PyDLL keeps the interpreter's lock: these calls never wait, and giving
        # it up and taking it again costs more than they do.
        hot = ctypes.PyDLL(path)
        abi = hot.lockstep_abi
        abi.restype = ctypes.c_uint32
        if abi() < ABI:
            library.problem = f"load {path}: got interface {abi()}; want {ABI} or later"
            return library
        _bind(library, hot, ctypes.CDLL(path))
    except (OSError, AttributeError) as error:
        fresh = Library()
        fresh.problem = f"load {path}: {error}"
        return fresh
    library.path = path
    return library


def _bind(library: Library, hot: ctypes.CDLL, slow: ctypes.CDLL) -> None:
    u32, u64, i32, i64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32, ctypes.c_int64
    text, bits = ctypes.c_char_p, ctypes.c_char_p

    def declare(lib: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        function = getattr(lib, "lockstep_" + name)
        function.restype, function.argtypes = result, arguments
        return function

    library.step_begin = declare(hot, "step_begin", None, i64)
    library.scope_name = declare(hot, "scope_name", u32, text)
    library.push = declare(hot, "scope_push", None, u32)
    library.pop = declare(hot, "scope_pop", None, u32)
    library.link = declare(hot, "link", None, bits, bits)
    if hasattr(hot, "lockstep_resumed"):  # interface 3
        library.resumed = declare(hot, "resumed", None, i64, i64, text, bits, text)
        library.fingerprint = declare(hot, "fingerprint", None, i64, u64, u64, u64, text, u32)
    library.group_open = declare(hot, "group_open", u32, u64, i32, i32, text)
    library.group_close = declare(hot, "group_close", None, u32)
    library.collective_begin = declare(hot, "collective_begin", u64, u32, text, u64, i32, text)
    library.collective_end = declare(hot, "collective_end", None, u64)
    if hasattr(slow, "lockstep_cupti_pause"):  # a library may be built without CUPTI
        # CUPTI may wait for the device: other threads run meanwhile.
        library.cupti_pause = declare(slow, "cupti_pause", ctypes.c_int)
        library.cupti_resume = declare(slow, "cupti_resume", ctypes.c_int)
    library._status = declare(hot, "status", text)


LIBRARY = load()
"""The library of this process, loaded once."""

if LIBRARY.problem and notes.debug():
    notes.tell(LIBRARY.problem)
