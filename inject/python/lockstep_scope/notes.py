# SPDX-License-Identifier: Apache-2.0

"""What a person is told on stderr. Nothing here raises: the job goes on."""

from __future__ import annotations

import os
import sys
from typing import Set

_told: Set[str] = set()
_MOST = 100


def debug() -> bool:
    """Whether LOCKSTEP_DEBUG is set, as the library reads it."""
    return os.environ.get("LOCKSTEP_DEBUG", "").lower() not in ("", "0", "false", "no")


def tell(text: str) -> None:
    """Prints one line, once."""
    if text in _told or len(_told) >= _MOST:
        return
    _told.add(text)
    try:
        sys.stderr.write(f"lockstep_scope: {' '.join(text.splitlines())}\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # no stderr, or a closed one
        return
