# SPDX-License-Identifier: Apache-2.0

"""torch.profiler: CUPTI belongs to one client, so ours stops while the program profiles."""

from __future__ import annotations

from typing import Any, Callable

from ..library import LIBRARY
from .patch import Hook


class Profiler(Hook):
    """Pauses Lockstep's CUPTI from the preparation of a trace until it ends."""

    name = "profiler"
    needs = "torch"

    def install(self) -> None:
        paused = 0

        def before(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                nonlocal paused
                if self.active:
                    paused += 1
                    if paused == 1:
                        LIBRARY.cupti_pause()
                return original(*args, **kwargs)

            return wrapper

        def after(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                nonlocal paused
                try:
                    return original(*args, **kwargs)
                finally:
                    if paused > 0:
                        paused -= 1
                        if paused == 0:
                            LIBRARY.cupti_resume()

            return wrapper

        profile = "torch.autograd.profiler.profile"
        self.replace(f"{profile}._prepare_trace", before)
        if self._missing:
            self._missing.clear()
            self.replace(f"{profile}.__enter__", before)
        self.replace(f"{profile}.__exit__", after)
