# SPDX-License-Identifier: Apache-2.0

"""What came of it, in one place."""

from __future__ import annotations

from typing import Any, Dict

from . import hooks, scopes, steps
from .library import LIBRARY


def status() -> Dict[str, Any]:
    """Says what is recorded, what is not, and why.

    Keys: library (its path, or None), problem (why there is none), ring (what
    the library says of its ring), step, hooks (name: "on", "waits for MODULE",
    or why it is off), left_out (scopes whose names found no room).
    """
    return {
        "library": LIBRARY.path,
        "problem": LIBRARY.problem,
        "ring": LIBRARY.ring(),
        "step": steps.current(),
        "hooks": hooks.states(),
        "left_out": scopes.left_out(),
    }
