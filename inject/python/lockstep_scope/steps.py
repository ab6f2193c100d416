# SPDX-License-Identifier: Apache-2.0

"""Steps of the job, and the spans of traces that they work for."""

from __future__ import annotations

import operator
import re
import sys
import warnings
from typing import Any, Callable, List, Optional, Tuple

from . import scopes
from .library import LIBRARY

# Of the W3C's: version 00 has four parts, later ones may have more, ff is none.
_TRACEPARENT = re.compile(
    r"(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?\Z"
)
_COUNT = re.compile(r"0*[1-9][0-9]{0,17}\Z")
_STEPS = range(-(2**63), 2**63)  # int64_t of lockstep.h


class _State:
    current: Optional[int] = None
    by_program = False
    automatic = False
    refused = False
    listeners: List[Callable[[int], None]] = []


_state = _State()


def current() -> Optional[int]:
    """Returns the step that the process is in, or None before the first."""
    return _state.current


def step(n: int) -> None:
    """Says that step n of the job begins; the same number on all ranks.

    A program that calls it numbers its own steps: none is found by itself any more.
    Raises TypeError where n is no integer, ValueError where 64 bits do not hold it.
    """
    n = _integer("begin step", n)
    if n not in _STEPS:
        raise ValueError(f"begin step: got {n}; want -2**63 to 2**63-1")
    _state.by_program = True
    _begin(n)


def _integer(what: str, n: Any) -> int:
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError(f"{what}: got {n!r:.80}; want an integer") from None


def every(n: int) -> None:
    """Records scopes only in steps that n divides, the same on all ranks.

    Steps are always recorded. Raises TypeError where n is no integer, ValueError
    where it is below 1.
    """
    n = _integer("set sampling", n)
    if n < 1:
        raise ValueError(f"set sampling: got every {n} steps; want 1 or more")
    scopes.sample(n, _state.current)


def read_every(text: str) -> int:
    """Returns the number from 1 that a text holds for :func:`every`, or 0."""
    return int(text) if _COUNT.match(text) else 0


def find_steps(on: bool) -> None:
    """Has :func:`first` and :func:`next` begin steps, or not."""
    _state.automatic = on


def first() -> None:
    """Begins step 0 where the program has not begun one."""
    if _state.current is None and _state.automatic:
        _begin(0)


def next() -> None:
    """Begins the step after this one, where the program does not number them."""
    if _state.automatic and not _state.by_program:
        _begin(0 if _state.current is None else _state.current + 1)


def listen(listener: Callable[[int], None]) -> None:
    """Has a listener called at each step that begins."""
    _state.listeners.append(listener)


def unlisten(listener: Callable[[int], None]) -> None:
    """Undoes :func:`listen`."""
    if listener in _state.listeners:
        _state.listeners.remove(listener)


def _begin(n: int) -> None:
    _state.current = n
    LIBRARY.step_begin(n)
    scopes.at_step(n)
    for listener in _state.listeners:
        listener(n)


def link(context: Any) -> None:
    """Says that the current step works for a span of a trace.

    context is a W3C traceparent ("00-<32 hex>-<16 hex>-01") or an OpenTelemetry
    SpanContext. One that is not valid (zero ids) is no span, and is not linked.
    Anything else, which may have come with a request, is not linked either: the
    first is told as a RuntimeWarning.
    """
    try:
        trace, span = _ids(context)
    except Exception:  # of whatever object it is: its job goes on
        _refuse(context)
        return
    if any(trace) and any(span):
        LIBRARY.link(trace, span)


def _ids(context: Any) -> Tuple[bytes, bytes]:
    if isinstance(context, str):
        match = _TRACEPARENT.match(context.strip().lower())
        if match is None:
            raise ValueError("it is no traceparent")
        return bytes.fromhex(match[1]), bytes.fromhex(match[2])
    return operator.index(context.trace_id).to_bytes(16, "big"), operator.index(context.span_id).to_bytes(8, "big")


def _refuse(context: Any) -> None:
    if _state.refused:
        return
    _state.refused = True
    got = repr(context) if isinstance(context, (str, bytes, int, float, type(None))) else type(context).__name__
    warnings.warn(
        f"link: got {got:.80}; want a traceparent, 00-<32 hex digits>-<16 hex digits>-<2>, whose ids are not zero, "
        "or a SpanContext: it is not linked (told once)",
        RuntimeWarning,
        stacklevel=3,
    )


def current_span() -> Any:
    """Returns OpenTelemetry's current span, where the program uses it; else None."""
    trace = sys.modules.get("opentelemetry.trace")
    get = getattr(trace, "get_current_span", None)
    return get() if get is not None else None
