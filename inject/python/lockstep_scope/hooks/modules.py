# SPDX-License-Identifier: Apache-2.0

"""torch.nn.Module: the outermost call is a scope "forward"."""

from __future__ import annotations

import fnmatch
import threading
import warnings
import weakref
from typing import Any, Optional

from .. import steps
from ..scopes import Scope, scope
from .patch import Hook, compiling


class _Call(threading.local):
    """The outermost call of a thread that is under way."""

    id = 0  # of the module: one whose call was interrupted is not kept
    module: Any = None  # a weak reference
    nested = 0  # calls of that module within itself
    step: Optional[int] = None


class Modules(Hook):
    """Records "forward", and submodules by pattern as "forward NAME"."""

    name = "modules"
    needs = "torch"

    def __init__(self, patterns: str) -> None:
        super().__init__()
        self._patterns = [p for p in (part.strip() for part in patterns.split(",")) if p]
        self._forward = scope("forward")
        self._call = _Call()
        self._named: "weakref.WeakKeyDictionary[Any, Scope]" = weakref.WeakKeyDictionary()
        self._roots: "weakref.WeakSet[Any]" = weakref.WeakSet()

    def install(self) -> None:
        from torch.nn.modules import module

        # torch.compile says at each model that global hooks fire once more for its
        # wrapper; the outermost call is that wrapper, which is what is wanted.
        message = "Using `torch.compile\\(module\\)` when there are global hooks"
        warnings.filterwarnings("ignore", message=message)
        self._undo_filter(warnings.filters[0])
        before, after = self._hooks()
        self.undo(module.register_module_forward_pre_hook(before).remove)
        self.undo(module.register_module_forward_hook(after, always_call=True).remove)

    def _undo_filter(self, ours: Any) -> None:
        self.undo(lambda: warnings.filters.remove(ours) if ours in warnings.filters else None)  # type: ignore[attr-defined]

    def _hooks(self) -> Any:
        call, forward, is_compiling, patterns = self._call, self._forward, compiling(), bool(self._patterns)
        current = steps.current

        # Most calls are neither the outermost nor recorded by name: they pay for
        # three comparisons.
        def before(module: Any, args: Any) -> None:
            if is_compiling():
                return
            if call.id == 0 or call.step != current():
                # A call of an earlier step is over, though nobody was told: an
                # interrupt ended it.
                begin(module)
            elif call.id == id(module):
                if call.module() is module:
                    call.nested += 1
                else:
                    begin(module)
            if patterns:
                self._enter(module)

        def begin(module: Any) -> None:
            steps.first()
            call.id, call.module, call.nested, call.step = id(module), weakref.ref(module), 0, current()
            if patterns:
                self._name(module)
            forward.__enter__()

        def after(module: Any, args: Any, result: Any) -> None:
            if is_compiling():
                return
            if patterns:
                self._exit(module)
            if call.id != id(module):
                return
            if call.nested > 0:
                call.nested -= 1
                return
            call.id, call.module = 0, None
            forward.__exit__(None, None, None)

        return before, after

    def _name(self, root: Any) -> None:
        if root in self._roots:
            return
        self._roots.add(root)
        for name, module in root.named_modules():
            if name and any(fnmatch.fnmatchcase(name, p) for p in self._patterns):
                self._named.setdefault(module, scope("forward " + name))

    def _enter(self, module: Any) -> None:
        s = self._named.get(module)
        if s is not None:
            s.__enter__()

    def _exit(self, module: Any) -> None:
        s = self._named.get(module)
        if s is not None:
            s.__exit__(None, None, None)
