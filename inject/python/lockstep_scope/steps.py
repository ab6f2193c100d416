"""Steps of the job, and the spans of traces that they work for."""

from __future__ import annotations

import re
import sys
from typing import Any, Callable, List, Optional

from . import scopes
from .library import LIBRARY

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?\Z")


class _State:
    current: Optional[int] = None
    by_program = False
    automatic = False
    listeners: List[Callable[[int], None]] = []


_state = _State()


def current() -> Optional[int]:
    """Returns the step that the process is in, or None before the first."""
    return _state.current


def step(n: int) -> None:
    """Says that step n of the job begins; the same number on all ranks.

    A program that calls it numbers its own steps: none is found by itself any more.
    """
    _state.by_program = True
    _begin(int(n))


def every(n: int) -> None:
    """Records scopes only in steps that n divides, the same on all ranks.

    Steps are always recorded. Raises ValueError where n is below 1.
    """
    if n < 1:
        raise ValueError(f"set sampling: got every {n} steps; want 1 or more")
    scopes.sample(n, _state.current)


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
    SpanContext. Raises ValueError for a text that is none. A context that is not
    valid (zero ids) is not linked.
    """
    if isinstance(context, str):
        match = _TRACEPARENT.match(context.strip().lower())
        if match is None:
            raise ValueError(f"read traceparent: got {context!r}; want 00-<32 hex digits>-<16 hex digits>-<2>")
        trace, span = int(match[1], 16), int(match[2], 16)
    else:
        trace, span = context.trace_id, context.span_id
    if trace and span:
        LIBRARY.link(trace.to_bytes(16, "big"), span.to_bytes(8, "big"))


def current_span() -> Any:
    """Returns OpenTelemetry's current span, where the program uses it; else None."""
    trace = sys.modules.get("opentelemetry.trace")
    get = getattr(trace, "get_current_span", None)
    return get() if get is not None else None
