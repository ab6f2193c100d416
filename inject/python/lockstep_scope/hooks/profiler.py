# SPDX-License-Identifier: Apache-2.0

"""torch.profiler: CUPTI belongs to one client, so ours stops while the program profiles."""

from __future__ import annotations

from typing import Any, Callable, Set

from ..library import LIBRARY
from .patch import Hook


class Profiler(Hook):
    """Pauses Lockstep's CUPTI from the preparation of a trace until it ends."""

    name = "profiler"
    needs = "torch"
    paused = False
    """Whether the library counts a pause of ours. It outlasts the hook, which may stop
    while a trace is recorded."""

    def install(self) -> None:
        # By their ids: a profile that is not enabled ends without having begun.
        recording: Set[int] = set()

        def begin(profile: Any) -> None:
            recording.add(id(profile))
            if not Profiler.paused:
                Profiler.paused = True
                LIBRARY.cupti_pause()

        def end(profile: Any) -> None:
            recording.discard(id(profile))
            if Profiler.paused and not recording:
                Profiler.paused = False
                LIBRARY.cupti_resume()

        def before(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(profile: Any, *args: Any, **kwargs: Any) -> Any:
                if not self.active:
                    return original(profile, *args, **kwargs)
                begin(profile)
                try:
                    return original(profile, *args, **kwargs)
                except BaseException:
                    end(profile)
                    raise

            return wrapper

        def after(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(profile: Any, *args: Any, **kwargs: Any) -> Any:
                try:
                    return original(profile, *args, **kwargs)
                finally:
                    if id(profile) in recording:
                        end(profile)

            return wrapper

        profile = "torch.autograd.profiler.profile"
        self.replace(f"{profile}._prepare_trace", before)
        if self._missing:
            self._missing.clear()
            self.replace(f"{profile}.__enter__", before)
        self.replace(f"{profile}.__exit__", after)
