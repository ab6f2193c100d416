# SPDX-License-Identifier: Apache-2.0

"""Arguments of calls that end up in one record, and have its bounds."""

from __future__ import annotations

import operator
import os
from typing import Any, Optional

_TEXT = 32  # bytes that a record has for a text


def integer(what: str, n: Any, least: int = 0, most: int = 2**63 - 1) -> int:
    """Returns n, an integer from least to most; what says of which call and argument it is."""
    try:
        if isinstance(n, bool):  # a flag that was passed in its place
            raise TypeError
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"{what}: got {n!r:.80}; want an integer") from None
    if not least <= n <= most:
        raise ValueError(f"{what}: got {_short(n)}; want {least} to {'2**63-1' if most == 2**63 - 1 else most}")
    return n


def seconds(what: str, value: Any) -> float:
    """Returns a number of seconds, which may be infinite; what says of which call and argument it is."""
    if isinstance(value, (bool, str, bytes)):
        raise TypeError(f"{what}: got {value!r:.80}; want seconds")
    try:
        n = float(value)
    except OverflowError:  # an integer that is larger than any float
        return float("inf") if value > 0 else float("-inf")
    except TypeError:
        raise TypeError(f"{what}: got {value!r:.80}; want seconds") from None
    if n != n:
        raise ValueError(f"{what}: got nan; want seconds")
    return n


def path(what: str, value: Any) -> str:
    """Returns a path as text."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise TypeError(f"{what}: got {value!r:.80}; want a path") from None


def _short(n: int) -> str:
    return str(n) if n.bit_length() < 256 else f"an integer of {n.bit_length()} bits"


def text(what: str, value: Any) -> Optional[bytes]:
    """Returns the bytes of a text, or of an integer from 0; None of None."""
    if value is None:
        return None
    if not isinstance(value, str):
        return str(integer(what, value)).encode()
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what}: got {value!a:.80}; want text") from None
    if not 0 < len(data) <= _TEXT:
        raise ValueError(f"{what}: got {len(data)} bytes; want 1 to {_TEXT}: a digest of what is longer")
    # The reader takes such a text for none.
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in value):
        raise ValueError(f"{what}: got {value!a:.80}; want text without control characters")
    return data
