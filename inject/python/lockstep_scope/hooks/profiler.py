# SPDX-License-Identifier: Apache-2.0

"""torch.profiler: CUPTI belongs to one client, so ours stops while the program profiles."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, Callable, Dict

from ..library import LIBRARY
from .patch import Hook


class Pause:
    """The pause of Lockstep's CUPTI while at least one profile records."""

    def __init__(self) -> None:
        # By their ids: a profile that is not enabled ends without having begun. The
        # reference ends the pause of a profile that is collected before its end.
        self.recording: Dict[int, "weakref.ref[Any]"] = {}
        # Whether the library counts a pause of ours. It outlasts the hook, which may stop
        # while a trace is recorded.
        self.paused = False
        self.unlock()
        os.register_at_fork(after_in_child=self.unlock)

    def unlock(self) -> None:
        """Makes a lock: after a fork, a thread that is not in the child may hold the old one."""
        # Garbage may be collected, and so a profile end, while its own thread has the lock.
        self._lock = threading.RLock()

    def begin(self, profile: Any) -> None:
        """Returns once the pause is in force."""
        key = id(profile)
        with self._lock:
            self.recording[key] = weakref.ref(profile, lambda _: self.end(key))
            if not self.paused:
                self.paused = True
                LIBRARY.cupti_pause()

    def end(self, key: int) -> None:
        """Ends the pause if the profile of this id was the last that records."""
        with self._lock:
            if self.recording.pop(key, None) is None:
                return
            if self.paused and not self.recording:
                self.paused = False
                LIBRARY.cupti_resume()

    def forget(self) -> None:
        """Drops the profiles that a hook has not seen end."""
        with self._lock:
            self.recording.clear()


PAUSE = Pause()


class Profiler(Hook):
    """Pauses Lockstep's CUPTI from the preparation of a trace until it ends."""

    name = "profiler"
    needs = "torch"

    def install(self) -> None:
        PAUSE.forget()

        def before(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(profile: Any, *args: Any, **kwargs: Any) -> Any:
                if not self.active:
                    return original(profile, *args, **kwargs)
                PAUSE.begin(profile)
                try:
                    return original(profile, *args, **kwargs)
                except BaseException:
                    PAUSE.end(id(profile))
                    raise

            return wrapper

        def after(original: Callable[..., Any]) -> Callable[..., Any]:
            def wrapper(profile: Any, *args: Any, **kwargs: Any) -> Any:
                try:
                    return original(profile, *args, **kwargs)
                finally:
                    PAUSE.end(id(profile))

            return wrapper

        profile = "torch.autograd.profiler.profile"
        self.replace(f"{profile}._prepare_trace", before)
        if self._missing:
            self._missing.clear()
            self.replace(f"{profile}.__enter__", before)
        self.replace(f"{profile}.__exit__", after)
