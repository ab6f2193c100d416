"""What is hooked, each apart: :data:`ALL` names them.

A hook changes nothing that the program computes, and goes away without a trace.
What a version of a framework lacks is not hooked, and :func:`states` says so.
"""

from __future__ import annotations

import os
from typing import Dict, List, Optional

from .. import imports, steps
from ..library import LIBRARY
from . import (
    backward,
    checkpoints,
    collectives,
    compilation,
    data,
    ddp,
    garbage,
    modules,
    optimizers,
    process_groups,
    profiler,
    spans,
)
from .patch import Hook

ALL = ("modules", "backward", "optimizer", "steps", "data", "gc", "compile", "process_group", "checkpoint",
       "profiler", "collectives", "ddp", "spans")  # fmt: skip
"""The names of all hooks, as LOCKSTEP_SCOPE_HOOKS takes them."""

_installed: List[Hook] = []
_states: Dict[str, str] = {}


def select(text: str) -> List[str]:
    """Returns the hooks that a list such as "all,-gc" names; raises ValueError for others."""
    chosen: Dict[str, bool] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, wanted = word.lstrip("-"), not word.startswith("-")
        if name not in ALL and name not in ("all", "none"):
            raise ValueError(f"read hooks: got {name!r}; want all, none, or some of {', '.join(ALL)}")
        if name in ("all", "none"):
            chosen = {each: wanted == (name == "all") for each in ALL}
            continue
        if not chosen and not wanted:
            chosen = dict.fromkeys(ALL, True)
        chosen[name] = wanted
    return [name for name in ALL if chosen.get(name)]


def _every(text: str) -> None:
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"read LOCKSTEP_SCOPE_EVERY: got {text!r}; want a number from 1")
    steps.every(int(text))


def _make(names: List[str], submodules: str) -> List[Hook]:
    marks_steps = "steps" in names
    makers = {
        "modules": lambda: modules.Modules(submodules),
        "backward": backward.Backward,
        "optimizer": optimizers.Optimizers,
        "steps": optimizers.Steps,
        "data": data.DataLoaders,
        "gc": garbage.Garbage,
        "compile": compilation.Compilation,
        "process_group": process_groups.ProcessGroups,
        "checkpoint": checkpoints.Checkpoints,
        "profiler": profiler.Profiler,
        "collectives": collectives.Collectives,
        "ddp": ddp.DataParallel,
        "spans": spans.Spans,
    }
    steps.find_steps(marks_steps)
    return [makers[name]() for name in names]


def install(hooks: Optional[str] = None, modules: Optional[str] = None) -> None:
    """Installs hooks; those of modules not imported yet, once they are.

    hooks is a list such as "all,-gc" (default: LOCKSTEP_SCOPE_HOOKS, or all).
    modules names submodules that get scopes of their own, by patterns of their
    qualified names (default: LOCKSTEP_SCOPE_MODULES, or none).
    LOCKSTEP_SCOPE_EVERY=n records scopes in every n-th step only. Raises
    ValueError where one of these is wrong. A second call replaces the first.
    Does nothing without the library.
    """
    env = os.environ.get
    names = select(hooks if hooks is not None else env("LOCKSTEP_SCOPE_HOOKS", "") or "all")
    if env("LOCKSTEP_SCOPE_EVERY"):
        _every(env("LOCKSTEP_SCOPE_EVERY", ""))
    uninstall()
    if not LIBRARY.present:
        _states.update(dict.fromkeys(names, "no library"))
        return
    for hook in _make(names, modules if modules is not None else env("LOCKSTEP_SCOPE_MODULES", "")):
        _installed.append(hook)
        _states[hook.name] = f"waits for {hook.needs}" if hook.needs else "on"
        imports.when_imported(hook.needs or "builtins", lambda hook=hook: _start(hook))  # type: ignore[misc]


def _start(hook: Hook) -> None:
    try:
        hook.start()
        missing = hook.missing()
        _states[hook.name] = "on" if not missing else f"on, without {', '.join(missing)}"
    except Exception as error:  # of another version of the framework: its program goes on as without us
        hook.stop()
        _states[hook.name] = f"off: {type(error).__name__}: {error}"


def uninstall() -> None:
    """Removes every hook, and leaves the program as it was."""
    imports.forget()
    for hook in reversed(_installed):
        hook.stop()
    _installed.clear()
    _states.clear()
    steps.find_steps(False)


def states() -> Dict[str, str]:
    """Returns for each hook "on", what it waits for, or why it is off."""
    return {name: _states.get(name, "not asked for") for name in ALL}
