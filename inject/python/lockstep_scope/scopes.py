# SPDX-License-Identifier: Apache-2.0

"""Scopes: named phases of a host thread.

A pair of begin and end has to stay under 2 µs, so a scope is one of a few
classes with nothing to ask at run time, and changes its class when what it has
to do changes. ``with`` looks up the exit before it enters, so that what began
as one class ends as the same.
"""

from __future__ import annotations

import functools
import inspect
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar, Union

from .library import LIBRARY

PHASES = ("", "init", "compile", "train", "eval", "checkpoint", "inference")
"""Phases by number, as enum lockstep_phase has them."""

MAX_NAMES = 512
"""Scopes (a name and a phase) that are kept; a ring has room for some 1,000 of all sources together."""

_push = LIBRARY.push
_pop = LIBRARY.pop
_F = TypeVar("_F", bound=Callable[..., Any])


class Scope:
    """A named phase of the host: a context manager and a decorator.

    One object serves all threads, and may be entered while it is open.
    """

    __slots__ = ("name", "phase", "_code")

    def __init__(self, name: str, phase: int) -> None:
        self.name, self.phase, self._code = name, phase, 0

    def __enter__(self) -> "Scope":
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def __call__(self, function: _F) -> _F:
        """Makes a function whose every call is in the scope.

        A coroutine or generator is in it from its first step to its last.
        """
        wrapper: Any
        if inspect.iscoroutinefunction(function):

            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return await function(*args, **kwargs)

        elif inspect.isasyncgenfunction(function):

            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    generator = function(*args, **kwargs)
                    step, given = generator.__anext__, ()  # type: Any, Any
                    while True:
                        try:
                            value = await step(*given)
                        except StopAsyncIteration:
                            return
                        try:
                            step, given = generator.asend, ((yield value),)
                        except GeneratorExit:
                            await generator.aclose()
                            raise
                        except BaseException as error:
                            step, given = generator.athrow, (error,)

        elif inspect.isgeneratorfunction(function):

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return (yield from function(*args, **kwargs))

        else:

            def wrapper(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return functools.wraps(function)(wrapper)  # type: ignore[return-value]


class _Plain(Scope):
    """Recorded whenever it is entered."""

    __slots__ = ()

    def __enter__(self) -> Scope:
        _push(self._code)
        return self

    def __exit__(self, *_: Any) -> None:
        _pop(self._code)


class _Sampled(Scope):
    """Recorded where the gate was open as it was entered."""

    __slots__ = ()

    def __enter__(self) -> Scope:
        recorded = _gate.open
        _open_of(self._code).append(recorded)
        if recorded:
            _push(self._code)
        return self

    def __exit__(self, *_: Any) -> None:
        entered = _open_of(self._code)
        # One that is not known was entered before there was anything to sample.
        if not entered or entered.pop():
            _pop(self._code)


class _New(Scope):
    """Not entered yet: a name costs the ring room, and the first makes the ring."""

    __slots__ = ()

    def __enter__(self) -> Scope:
        _resolve(self)
        return self.__enter__()

    def __exit__(self, *exception: Any) -> None:
        if type(self) is not _New:
            self.__exit__(*exception)


class _Gate:
    """Whether scopes that are entered now are recorded."""

    def __init__(self) -> None:
        self.enabled = True
        self.every = 1
        self.open = True
        self.awake = False
        """Whether anything was recorded: collections of garbage do not make a ring."""


_gate = _Gate()
_scopes: Dict[Tuple[str, int], Scope] = {}
_cache: Dict[Tuple[str, Union[str, int, None]], Scope] = {}  # the same, by what scope() was called with
_left_out = 0
_local = threading.local()
_recorded: type = _Plain


def _open_of(code: int) -> List[bool]:
    try:
        return _local.open.setdefault(code, [])
    except AttributeError:
        _local.open = {code: []}
        return _local.open[code]


def _resolve(s: Scope) -> None:
    global _left_out
    _gate.awake = True
    code = LIBRARY.scope_name(s.name.encode("utf-8", "replace"))
    if code == 0:
        _left_out += 1
        s.__class__ = Scope
        return
    s._code = code | s.phase << 16
    s.__class__ = _recorded


NOTHING = Scope("", 0)
"""The scope that records nothing."""


def phase_number(phase: Union[str, int, None]) -> int:
    """Returns the number of a phase; raises ValueError for an unknown one."""
    if phase is None:
        return 0
    if isinstance(phase, str) and phase in PHASES:
        return PHASES.index(phase)
    if isinstance(phase, int) and 0 <= phase < len(PHASES):
        return phase
    raise ValueError(f"read phase: got {phase!r}; want one of {', '.join(PHASES[1:])}")


def scope(name: str, phase: Union[str, int, None] = None) -> Scope:
    """Returns the scope of a name, for ``with`` or as a decorator.

    name is cut to 55 bytes. phase is a name or a number of PHASES. Names beyond
    MAX_NAMES, or for which the ring has no room, are not recorded. Raises
    TypeError for a name that is no text, ValueError for an unknown phase.
    """
    global _left_out
    try:
        return _cache[name, phase]
    except (KeyError, TypeError):
        pass
    if not isinstance(name, str):
        raise TypeError(f"read scope's name: got {type(name).__name__}; want str")
    number = phase_number(phase)
    if len(_scopes) >= MAX_NAMES and (name, number) not in _scopes:
        _left_out += LIBRARY.present
        return NOTHING
    s = _scopes.setdefault((name, number), _New(name, number) if LIBRARY.present else NOTHING)
    _cache[name, phase] = s
    return s


def left_out() -> int:
    """Returns how many scopes were asked for whose names found no room."""
    return _left_out


def awake() -> bool:
    """Whether this process has begun to record."""
    return _gate.awake


def _apply(step: Optional[int]) -> None:
    global _recorded
    gate = _gate
    gate.open = gate.enabled and (step is None or step % gate.every == 0)
    if _recorded is _Plain and (not gate.enabled or gate.every > 1):
        # From now on, for good: an end must know what its begin did.
        _recorded = _Sampled
        for s in list(_scopes.values()):
            if type(s) is _Plain:
                s.__class__ = _Sampled


def sample(every: int, step: Optional[int]) -> None:
    """Records scopes in steps that every divides, beginning with this one."""
    _gate.every = every
    _apply(step)


def at_step(step: int) -> None:
    """Opens or closes the gate for a step that begins."""
    _gate.awake = True
    if _recorded is _Sampled:
        _apply(step)


def disable() -> None:
    """Records no scopes from here on; steps go on. Open scopes are ended."""
    from . import steps

    _gate.enabled = False
    _apply(steps.current())


def enable() -> None:
    """Undoes :func:`disable`."""
    from . import steps

    _gate.enabled = True
    _apply(steps.current())
