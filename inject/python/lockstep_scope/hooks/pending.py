"""Operations that go on after the call: one thread looks for their ends.

A callback of Python's on a backend's thread would say so sooner, but has the
interpreter's lock to wait for, which holds up the backend's next operation, and
aborts a process that is at its end.
"""

from __future__ import annotations

import atexit
import collections
import os
import threading
import time
from typing import Any, Deque, Optional, Tuple

from ..library import LIBRARY

SOONEST_S, LATEST_S = 0.0005, 0.01
"""How long between two looks: a 16th of the time that the oldest has taken, within these."""

LOOKS = 16
"""How many that go on are looked at a time: backends end them nearly in order."""

MAX_PENDING = 4096
"""Operations that are waited for at a time; others end as they begin."""

LAST_S = 2.0
"""How long the end of the process waits for futures with callbacks of Python's."""


class Pending:
    """The operations that go on."""

    def __init__(self) -> None:
        self._fresh()
        atexit.register(self._at_exit)
        os.register_at_fork(after_in_child=self._fresh)

    def _fresh(self) -> None:
        # Of a child too: its parent's thread is not there, nor what it waits for.
        self._lock = threading.Lock()
        self._waiting: Deque[Tuple[Any, int, float]] = collections.deque()
        self._callbacks: Deque[Any] = collections.deque()
        self._wake = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._exiting = False

    def add(self, future: Any, handle: int) -> None:
        """Ends a collective soon after its future is done."""
        if self._exiting or len(self._waiting) >= MAX_PENDING or future.done():
            LIBRARY.collective_end(handle)
            return
        self._waiting.append((future, handle, time.monotonic()))
        if self._thread is None:
            self._start()
        if not self._wake.is_set():
            self._wake.set()

    def called_back(self, future: Any) -> None:
        """Has the end of the process wait for a future whose callback is Python's."""
        while self._callbacks and (len(self._callbacks) >= MAX_PENDING or self._callbacks[0].done()):
            self._callbacks.popleft()
        self._callbacks.append(future)

    def look(self) -> None:
        """Ends what is done."""
        with self._lock:
            going_on = []
            for _ in range(len(self._waiting)):
                entry = self._waiting.popleft()
                if entry[0].done():
                    LIBRARY.collective_end(entry[1])
                    continue
                going_on.append(entry)
                if len(going_on) >= LOOKS:
                    break
            self._waiting.extendleft(reversed(going_on))

    def stop(self) -> None:
        """Ends the thread; what still goes on is left open."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._wake.set()
            thread.join(LAST_S)
        self.look()
        self._waiting.clear()

    def _at_exit(self) -> None:
        self._exiting = True
        self.stop()
        deadline = time.monotonic() + LAST_S
        while self._callbacks and time.monotonic() < deadline:
            if self._callbacks[0].done():
                self._callbacks.popleft()
            else:
                time.sleep(SOONEST_S)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lockstep_scope", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        me = threading.current_thread()
        while self._thread is me:
            self.look()
            since = self._oldest()
            if since is not None:
                time.sleep(min(max((time.monotonic() - since) / 16, SOONEST_S), LATEST_S))
                continue
            self._wake.clear()
            if self._oldest() is None and self._thread is me:
                self._wake.wait()

    def _oldest(self) -> Optional[float]:
        with self._lock:
            return self._waiting[0][2] if self._waiting else None


PENDING = Pending()
"""The operations of this process."""
