"""What a person is told on stderr. Nothing here raises: the job goes on."""

from __future__ import annotations

import os
import sys


def debug() -> bool:
    """Whether LOCKSTEP_DEBUG is set, as the library reads it."""
    return os.environ.get("LOCKSTEP_DEBUG", "").lower() not in ("", "0", "false", "no")


def tell(text: str) -> None:
    """Prints one line."""
    try:
        sys.stderr.write(f"lockstep_scope: {text}\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # no stderr, or a closed one
        return
