# SPDX-License-Identifier: Apache-2.0

"""What is hooked, each apart: :data:`ALL` names them.

A hook changes nothing that the program computes, and goes away without a trace, but
for models of DistributedDataParallel that have our communication hook: PyTorch takes none back.
What a version of a framework lacks is not hooked, and :func:`states` says so.
"""

from __future__ import annotations

import os
from typing import Dict, List, Optional, Tuple

from .. import imports, notes, steps
from ..library import LIBRARY
from . import (
    backward,
    checkpoints,
    collectives,
    compilation,
    data,
    ddp,
    debuggers,
    garbage,
    modules,
    optimizers,
    process_groups,
    profiler,
    spans,
)
from .patch import Hook

ALL = ("modules", "backward", "optimizer", "steps", "data", "gc", "compile", "process_group", "checkpoint",
       "profiler", "collectives", "ddp", "spans", "debugger")  # fmt: skip
"""The names of all hooks, as LOCKSTEP_SCOPE_HOOKS takes them."""

WANTED = f"all, none, or some of {', '.join(ALL)}"
"""What a list of hooks may hold, in words."""

_installed: List[Hook] = []
_states: Dict[str, str] = {}


def select(text: str) -> Tuple[List[str], List[str]]:
    """Returns the hooks that a list such as "all,-gc" names, and the words that name none.

    A list of nothing but those means all.
    """
    chosen: Dict[str, bool] = {}
    unknown: List[str] = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, wanted = word.lstrip("-"), not word.startswith("-")
        if name in ("all", "none"):
            chosen = {each: wanted == (name == "all") for each in ALL}
        elif name not in ALL:
            unknown.append(name)
        else:
            chosen = chosen or dict.fromkeys(ALL, not wanted)
            chosen[name] = wanted
    if unknown and not chosen:
        chosen = dict.fromkeys(ALL, True)
    return [name for name in ALL if chosen.get(name)], unknown


def _of_call(text: str) -> List[str]:
    names, unknown = select(text)
    if unknown:
        raise ValueError(f"read hooks: got {unknown[0]!r}; want {WANTED}")
    return names


def _of_environment() -> List[str]:
    # Of a variable that is wrong the rest holds: the job goes on.
    text = os.environ.get("LOCKSTEP_SCOPE_HOOKS", "").strip() or "all"
    names, unknown = select(text)
    if unknown and LIBRARY.present:
        used = "all hooks are used" if len(names) == len(ALL) else "it is left out"
        notes.tell(f"LOCKSTEP_SCOPE_HOOKS={text:.80}: got {unknown[0]!r:.80}; want {WANTED}: {used}")
    return names


def _sample() -> None:
    text = os.environ.get("LOCKSTEP_SCOPE_EVERY", "").strip()
    number = steps.read_every(text)
    if number:
        steps.every(number)
    elif text:
        notes.tell(f"LOCKSTEP_SCOPE_EVERY={text:.80}: want a number from 1: scopes are recorded in every step")


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
        "debugger": debuggers.Debugger,
    }
    steps.find_steps(marks_steps)
    return [makers[name]() for name in names]


def install(hooks: Optional[str] = None, modules: Optional[str] = None) -> None:
    """Installs hooks; those of modules not imported yet, once they are.

    hooks is a list such as "all,-gc" (default: LOCKSTEP_SCOPE_HOOKS, or all).
    modules names submodules that get scopes of their own, by patterns of their
    qualified names (default: LOCKSTEP_SCOPE_MODULES, or none).
    LOCKSTEP_SCOPE_EVERY=n records scopes in every n-th step only. What is wrong
    with a variable is told on stderr, and the rest holds; ValueError is raised only
    for hooks of the call that are none. A second call replaces the first. Does
    nothing without the library.
    """
    names = _of_call(hooks) if hooks is not None else _of_environment()
    uninstall()
    if not LIBRARY.present:
        _states.update(dict.fromkeys(names, "no library"))
        return
    _sample()
    if modules is None:
        modules = os.environ.get("LOCKSTEP_SCOPE_MODULES", "")
    for hook in _make(names, modules):
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
    """Removes every hook; models of DistributedDataParallel keep theirs."""
    imports.forget()
    for hook in reversed(_installed):
        hook.stop()
    _installed.clear()
    _states.clear()
    steps.find_steps(False)


def states() -> Dict[str, str]:
    """Returns for each hook "on", what it waits for, or why it is off."""
    return {name: _states.get(name, "not asked for") for name in ALL}
