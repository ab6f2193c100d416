# SPDX-License-Identifier: Apache-2.0

"""Python's debugger: while it waits for a person, the thread is in a scope "debugger"."""

from __future__ import annotations

import threading

from ..scopes import scope
from .patch import Hook, outermost


class Debugger(Hook):
    """Records "debugger": of pdb, and of what is made of it (ipdb, torch.distributed.breakpoint).

    It is the prompt that is hooked, and not ``breakpoint()``: that returns before the prompt
    is there, and a frame of ours between would be where the debugger stops.
    """

    name = "debugger"
    needs = "pdb"

    def install(self) -> None:
        self.replace("pdb.Pdb.interaction", outermost(self, scope("debugger"), threading.local(), lambda: False))
