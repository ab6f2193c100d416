# SPDX-License-Identifier: Apache-2.0

"""Calls when a module has been imported, without importing it."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from typing import Any, Callable, Dict, List, Set

_waiting: Dict[str, List[Callable[[], None]]] = {}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: has the others find, and notes when their module is there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                _watch(name, spec.loader)
                return spec
        return None


class _Execution:
    """In place of a loader's exec_module: one loader may have several modules."""

    def __init__(self, loader: Any) -> None:
        self.loader, self.original = loader, loader.exec_module
        self.names: Set[str] = set()

    def __call__(self, module: Any) -> None:
        name = module.__name__
        self.names.discard(name)
        if not self.names:
            vars(self.loader).pop("exec_module", None)  # what remains of us is nothing
        self.original(module)
        for call in _waiting.pop(name, []):
            call()


def _watch(name: str, loader: Any) -> None:
    execution = getattr(loader, "exec_module", None)
    if execution is None:
        return
    if not isinstance(execution, _Execution):
        execution = _Execution(loader)
        try:
            loader.exec_module = execution
        except AttributeError:
            return  # a loader without attributes: status() says that the hook still waits
    execution.names.add(name)


_finder = _Finder()


def _complete(name: str) -> bool:
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return module is not None and not getattr(spec, "_initializing", False)


def when_imported(name: str, call: Callable[[], None]) -> None:
    """Calls as soon as the module is imported: now, where it is already."""
    if _complete(name):
        call()
        return
    _waiting.setdefault(name, []).append(call)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def forget() -> None:
    """Undoes every :func:`when_imported` that still waits."""
    _waiting.clear()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
