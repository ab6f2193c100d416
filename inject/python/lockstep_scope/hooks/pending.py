# SPDX-License-Identifier: Apache-2.0

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
"""How long between two looks: a 16th of the time that the newest has taken, within these."""

SPARED = 8
"""At least so many times as long as a look took, where thousands are waited for."""

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
        self._awake()

    def called_back(self, future: Any) -> None:
        """Has the end of the process wait for a future whose callback is Python's."""
        if self._exiting or len(self._callbacks) >= MAX_PENDING or future.done():
            return
        self._callbacks.append(future)
        self._awake()

    def look(self) -> None:
        """Ends what is done, and lets go of it."""
        with self._lock:
            for _ in range(len(self._waiting)):
                entry = self._waiting.popleft()
                if entry[0].done():
                    LIBRARY.collective_end(entry[1])
                else:
                    self._waiting.append(entry)
            for _ in range(len(self._callbacks)):
                future = self._callbacks.popleft()
                if not future.done():
                    self._callbacks.append(future)

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

    def _awake(self) -> None:
        if self._thread is None:
            self._start()
        if not self._wake.is_set():
            self._wake.set()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lockstep_scope", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        me = threading.current_thread()
        while self._thread is me:
            began = time.monotonic()
            self.look()
            took = time.monotonic() - began
            if self._idle():
                self._wake.clear()
                if self._idle() and self._thread is me:
                    self._wake.wait()
                continue
            time.sleep(max(min(max(self._newest() / 16, SOONEST_S), LATEST_S), SPARED * took))

    def _idle(self) -> bool:
        return not self._waiting and not self._callbacks

    def _newest(self) -> float:
        """For how long the operation that began last has gone on, in seconds."""
        try:
            return time.monotonic() - self._waiting[-1][2]
        except IndexError:  # none; callbacks only
            return LATEST_S


PENDING = Pending()
"""The operations of this process."""
