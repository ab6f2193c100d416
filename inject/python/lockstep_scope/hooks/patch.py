# SPDX-License-Identifier: Apache-2.0

"""What hooks are made of: attributes that are replaced, and put back."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, List, Tuple

from ..scopes import Scope

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class Hook:
    """One hook. ``needs`` is the module that has to be imported first."""

    name = ""
    needs = ""

    def __init__(self) -> None:
        self.active = False
        self._replaced: List[Tuple[Any, str, Any, Any]] = []
        self._missing: List[str] = []
        self._undo: List[Callable[[], None]] = []

    def start(self) -> None:
        """Installs the hook; raises where the framework is not as expected."""
        self.active = True
        self.install()

    def install(self) -> None:
        """What a hook does at its start."""
        raise NotImplementedError

    def stop(self) -> None:
        """Removes the hook. A wrapper that others have wrapped since stays, and passes through."""
        self.active = False
        for owner, name, original, wrapper in reversed(self._replaced):
            if vars(owner).get(name) is wrapper:
                setattr(owner, name, original)
        self._replaced.clear()
        while self._undo:
            self._undo.pop()()

    def missing(self) -> List[str]:
        """Returns what was to be hooked and is not there."""
        return self._missing

    def undo(self, call: Callable[[], Any]) -> None:
        """Has :meth:`stop` call it."""
        self._undo.append(call)

    def replace(self, places: str, wrap: Wrap) -> None:
        """Wraps one function under all the names at which it is found.

        places are dotted names, "torch.save torch.serialization.save"; those that
        are not there, or hold another function than the first, are passed over.
        """
        original = wrapper = None
        for place in places.split():
            owner, name = self._owner(place)
            value = vars(owner).get(name) if owner is not None else None
            if value is None or (original is not None and value is not original):
                continue
            if original is None:
                original, wrapper = value, functools.wraps(value)(wrap(value))
                self._scriptable(original, wrapper)
            setattr(owner, name, wrapper)
            self._replaced.append((owner, name, original, wrapper))
        if original is None:
            self._missing.append(places.split()[0])

    def _scriptable(self, original: Any, wrapper: Any) -> None:
        # TorchScript knows functions that are operators by their identity, from a
        # table that is made at its first use: made before ours are there, it also
        # knows the originals once we are gone.
        builtins = sys.modules.get("torch.jit._builtins")
        try:
            table = builtins._get_builtin_table()  # type: ignore[union-attr]
            operator = table.get(id(original))
        except AttributeError:
            return
        if operator is not None:
            table[id(wrapper)] = operator
            self._undo.append(lambda: table.pop(id(wrapper), None))

    @staticmethod
    def _owner(place: str) -> Tuple[Any, str]:
        # By the modules that are loaded: one that is just being imported is no
        # attribute of its package yet.
        *path, name = place.split(".")
        split = next(n for n in range(len(path), 0, -1) if ".".join(path[:n]) in sys.modules)
        owner: Any = sys.modules[".".join(path[:split])]
        for part in path[split:]:
            owner = getattr(owner, part, None)
        return owner, name


def compiling() -> Callable[[], bool]:
    """Returns what says whether torch.compile traces this very code.

    Then hooks step aside: a graph has no phases, and is to be what it is without us.
    """
    import torch

    ask = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return ask if ask is not None else lambda: False


def outermost(hook: Hook, span: Scope, local: Any, is_compiling: Callable[[], bool]) -> Wrap:
    """Returns what puts a function's outermost call on a thread into a scope."""

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not hook.active or getattr(local, "inside", False):
                return original(*args, **kwargs)
            local.inside = True
            try:
                with span:
                    return original(*args, **kwargs)
            finally:
                local.inside = False

        return wrapper

    return wrap
