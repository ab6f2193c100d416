# SPDX-License-Identifier: Apache-2.0

"""Python's collector of cyclic garbage: each run is a scope "garbage_collection"."""

from __future__ import annotations

import gc
import threading
from typing import Any, Dict

from ..scopes import awake, scope
from .patch import Hook


class Garbage(Hook):
    """Records "garbage_collection", once anything else was recorded."""

    name = "gc"

    def install(self) -> None:
        span, local = scope("garbage_collection"), threading.local()

        def collected(phase: str, info: Dict[str, Any]) -> None:
            if phase == "start":
                local.begun = awake()
                if local.begun:
                    span.__enter__()
            elif getattr(local, "begun", False):
                local.begun = False
                span.__exit__(None, None, None)

        gc.callbacks.append(collected)
        self.undo(lambda: gc.callbacks.remove(collected) if collected in gc.callbacks else None)
