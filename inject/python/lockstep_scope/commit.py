# SPDX-License-Identifier: Apache-2.0

"""Commits saves of a job's domains together, with each confirmation reflected back."""

from __future__ import annotations

import contextlib
import os
import ssl
import threading
import time
import warnings
import weakref
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Optional, Tuple, Union

from .bilateral import COMMITTED, MAX_DOMAINS, MAX_SLOTS, Answer, Domain, Slot
from .checks import integer, path, seconds
from .records import Record
from .service import MAX_WAIT, PATIENCE, Refused, Service, Unreachable

_PAUSE, _MAX_PAUSE = 0.1, 2.0  # seconds, after an answer that came early, or none
_BEAT = 15.0  # seconds: so long others wait at most for who need not wait himself
_GRACE = 1.0  # seconds that a call's last answer may take to come, after its timeout
_PIECE = 0.25  # seconds that may go by before it is seen that the committer is closed
_BRIEF = 5.0  # seconds to tell others what they may wait for and this domain need not
_CONFLICT = 409  # a status: what was told contradicts what others have
_MAX_NAME = 64  # bytes; percent-encoded, a file name has room for them


class NotConfirmed(RuntimeError):
    """Not all domains have confirmed in time. Nothing is lost: what all hold can be recovered.

    missing names the first of those that were waited for, as far as they are known.
    """

    def __init__(self, text: str, missing: Tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.missing = missing


class Restarted(NotConfirmed):
    """A domain was begun anew: all must recover() before they save again."""


class Lost(RuntimeError):
    """A save that all domains held is not held by all any more."""


@dataclass(frozen=True)
class Recovered:
    """epoch: of the save to load; None where there is none. attempt tells attempts at it apart."""

    epoch: Optional[int]
    attempt: Optional[str] = None


class Committer:
    """Commits one domain's part of the saves of a job, and finds the save to resume from.

    job: as others of the job call it; domain: names this part of it, such as "rank 3", 1 to 64 bytes;
    domains: how many there are. folder: where this domain keeps its parts, its own or shared with
    others; its records are in folder/.lockstep-commit. url: of an epoch_commit receiver,
    LOCKSTEP_COMMIT_URL by default. headers: sent with each message. context: for https. token: that of
    the receiver; LOCKSTEP_COMMIT_TOKEN by default, or that in the file LOCKSTEP_COMMIT_TOKEN_FILE.
    All domains of a job do the same:

        with Committer(job, f"rank {rank}", world_size, folder) as committer:
            found = committer.recover()
            delete_all_parts_but(committer.held())     # also what a crash left half written
            if found.epoch is not None: load(found.epoch)
            ...
                write(path)                            # where nothing is
                committer.commit(step, [path])
                delete_all_parts_but(committer.held())

    What is held must not be changed until held() lists it no more; so each save needs a name that no
    save has that is there.
    May be used from any thread; calls wait for one another. Belongs to the process that made it: in a
    fork all but close() raise RuntimeError, as they do once it is closed, or another process has taken
    the domain.
    Raises ValueError or TypeError where an argument or the record is not right, RuntimeError where
    another process is the same domain.
    """

    def __init__(
        self,
        job: str,
        domain: str,
        domains: int,
        folder: Union[str, "os.PathLike[str]"],
        url: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        context: Optional[ssl.SSLContext] = None,
        token: Optional[str] = None,
    ) -> None:
        self._names = {"job": _name("job", job), "domain": _name("domain", domain)}
        domains = integer("commit: domains", domains, 1, MAX_DOMAINS)
        folder = path("commit: folder", folder)
        self._service = Service(os.environ.get("LOCKSTEP_COMMIT_URL", "") if url is None else url, headers, context, token)
        self._owner = os.getpid()
        self._turn = threading.Lock()  # has the call that runs, also while its part goes to the disk
        # Has who tells or writes the record: the heart only while no call does. Its thread gets it again, so
        # that a signal handler can close what it has interrupted.
        self._mutex = threading.RLock()
        self._busy = False  # who has the mutex is at something that a signal handler must not end
        self._wanted = False  # a call waits for the heart
        self._closing = self._leaving = False
        self._leave_by = 0.0
        self._service.ended = lambda: not self._leaving and (self._closing or self._wanted)
        self._heart = _Heart(self._idle)
        self._record = Record(folder, job, domain, domains)
        _open.add(self)
        try:
            slots = self._record.read()
        except BaseException:
            self._record.close()
            raise
        self._written: Optional[Tuple[Slot, ...]] = slots
        self._untold = False  # something is written down that nobody was told
        self._domain = Domain(domains, slots)
        self._held = tuple(self._domain.epochs())

    def __enter__(self) -> "Committer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Leaves the domain to another process. What is held stays held.

        What was written down last and could not be told is told now, for some seconds at most. A call
        that runs raises RuntimeError after about a second, or once the disk has done what it was asked;
        one that brings a part to the disk is not waited for, and commits nothing. Where a call takes
        longer, or this is called by a signal handler that has interrupted it, the call leaves the domain as
        it ends, and this returns before.
        """
        if os.getpid() != self._owner:
            self._forked()
            return
        if not self._closing:
            self._leave_by, self._closing = time.monotonic() + _BRIEF, True
            self._heart.stop()  # once: a signal handler may have interrupted just this
        got = self._mutex.acquire(blocking=False)
        if not (got and not self._busy or self._leaving):
            self._service.interrupt()
        if not got and not self._mutex.acquire(timeout=_BRIEF + _GRACE):
            return  # who has it leaves
        try:
            if not self._busy:
                self._leave()
        finally:
            self._mutex.release()

    def _leave(self) -> None:
        if self._leaving:
            return  # a signal handler has interrupted it
        self._leaving = True
        try:
            if self._record.open:
                self._farewell()
        finally:
            self._service.close()
            self._record.close()

    def _forked(self) -> None:
        """Lets go of what a fork has of its parent's. The mutex may be held by a thread that there is no more."""
        self._service.abandon()
        self._record.close()

    def held(self) -> Tuple[int, ...]:
        """Returns the epochs whose parts this domain must keep. What else there is of saves may go."""
        self._check("held")
        return self._held

    def _check(self, what: str) -> None:
        """Raises RuntimeError where this is not the domain any more: another process may be."""
        if os.getpid() != self._owner:
            raise RuntimeError(f"{what}: got process {os.getpid()}; want {self._owner}, which made the committer, of which this is a fork")
        if self._closing or not self._record.open:
            raise RuntimeError(f"{what}: the committer is closed")

    @contextlib.contextmanager
    def _call(self, what: str, timeout: float) -> Iterator[float]:
        """Keeps other calls away for one; yields when the call's time is over."""
        self._check(what)
        end = time.monotonic() + max(0.0, min(timeout, threading.TIMEOUT_MAX))
        self._acquire(self._turn, what, end)
        try:
            yield end
        finally:
            self._turn.release()

    def _acquire(self, lock: Any, what: str, end: float) -> None:
        while not lock.acquire(timeout=max(0.0, min(_PIECE, end - time.monotonic()))):
            self._check(what)
            if time.monotonic() >= end:
                raise NotConfirmed(f"{what}: another call has not ended in time; this one has done nothing")

    @contextlib.contextmanager
    def _alone(self, what: str, end: float) -> Iterator[None]:
        """Has record, service and rule for a call: the heart, which alone may have them, is cut short."""
        if not self._mutex.acquire(timeout=_PIECE):
            self._wanted = True
            try:
                self._service.interrupt()
                self._acquire(self._mutex, what, end)
            finally:
                self._wanted = False
        with self._doing():
            self._check(what)
            yield

    @contextlib.contextmanager
    def _doing(self) -> Iterator[None]:
        """Gives the mutex back, and leaves the domain where close() was called meanwhile."""
        try:
            self._busy = True
            yield
        finally:
            self._busy = False
            try:
                if self._closing:
                    self._leave()
            finally:
                self._mutex.release()

    def recover(self, timeout: float = 600.0, older: bool = False) -> Recovered:
        """Returns the newest save of which every domain holds its part, and commits it.

        Called by all domains as they begin, and again after Restarted; waits for all of them. Parts
        of newer saves, which not all hold, are held no more.
        Raises NotConfirmed where not all came within timeout seconds, 1 s later at most. Raises Lost where this
        domain, or one that still has its part, knows that all held a save which is not held by all now:
        what is left is older than a save that was confirmed. Then nothing is let go, and older=True,
        given on all domains, takes what is left.
        """
        timeout = seconds("recover: timeout", timeout)
        with self._call("recover", timeout) as end, self._alone("recover", end):
            try:
                return self._recover(end, older)
            except Refused as e:
                if e.status != _CONFLICT:
                    raise
            # A message of an older life, held back until a service forgot, makes that refuse this one, as
            # though the older were the newer. Whoever called again would begin a new life, too; whether the
            # record is still this domain's is looked at again. Once, so that two of one name do not
            # drive each other on for ever.
            return self._recover(end, older)

    def _recover(self, end: float, older: bool) -> Recovered:
        self._domain.begin()
        self._look()
        while True:
            answer = self._until(self._domain.join, lambda: {"for": "session"}, end, "recover")
            lost = self._domain.lost(answer)
            if lost is not None and not older:
                left = f"the newest that all hold is {answer.recoverable[0]}" if answer.recoverable else "there is none that all hold"
                raise Lost(f"recover: save {lost[0]} was held by all domains, and is not any more; {left}")
            self._put(self._domain.decide(answer))
            if answer.recoverable is None:
                break
            try:
                self._reflect(answer.recoverable[0], end, f"recover save {answer.recoverable[0]}")
                break
            except Restarted:  # one more comes, with whom all is as it was
                continue
        self._domain.decided = True
        self._heart.beat()
        return Recovered(*answer.recoverable) if answer.recoverable else Recovered(None)

    def commit(self, epoch: int, paths: Iterable[Union[str, "os.PathLike[str]"]], timeout: float = 600.0) -> None:
        """Commits the save of an epoch, of which this domain's part is below paths.

        epoch: greater than those of the saves before, the same on all domains. paths: files or
        folders of this domain alone, below folder, and relative to it where they are relative; they
        are brought to the disk first. Links are refused, as is whatever is neither file nor folder,
        since what they lead to would not be on the disk. Returns when all domains have confirmed, and
        this one knows that all know: from then on this save is what all recover, and those before are
        held no more.
        Raises NotConfirmed where that has not come after timeout seconds, 1 s later at most; where the
        disk takes longer, the others are asked once then. If held() lists the save, it is gone on with
        in the background, and may still be confirmed. Raises Restarted where a domain was begun anew;
        Refused where the service will have none of it; OSError where the disk will not: then write the
        part anew, since a second fsync says nothing of what the first has lost.
        """
        epoch = integer("commit: epoch", epoch)
        if isinstance(paths, (str, bytes, os.PathLike)):
            raise TypeError(f"commit save {epoch}: paths: got {paths!r:.80}; want a list of paths")
        try:
            each = iter(paths)
        except TypeError:
            raise TypeError(f"commit: paths: got {paths!r:.80}; want a list of paths") from None
        below = [path("commit: paths", p) for p in each]
        timeout = seconds("commit: timeout", timeout)
        what = f"commit save {epoch}"
        with self._call(what, timeout) as end:
            with self._alone(what, end):
                self._may_save(epoch, what)
            # The disk may take minutes, in which the heart tells: a service lets those make room that are silent.
            parts = self._record.settle(below)
            with self._alone(what, float("inf")):  # the heart may be waiting for the same disk
                self._may_save(epoch, what)  # it may have found that another process is the domain
                end = max(end, time.monotonic())
                self._ask(what, end)
                self._put(self._domain.save(epoch, parts))
                self._reflect(epoch, end, what)

    def _may_save(self, epoch: int, what: str) -> None:
        held = self._domain.epochs()
        if not self._domain.decided:
            raise RuntimeError(f"{what}: want recover() first")
        if held and epoch <= held[-1]:
            raise ValueError(f"{what}: want an epoch after {held[-1]}, which is held")
        if len(held) >= MAX_SLOTS:
            raise RuntimeError(f"{what}: got {len(held)} saves that are not confirmed; want fewer than {MAX_SLOTS}")

    def _ask(self, what: str, end: float) -> None:
        """Has the service say whether another life of this domain has begun, before anything is written."""
        try:
            answer = self._exchange({}, 0.0, end)
        except Unreachable:
            self._check(what)
            return  # the record says it, too, but for what is written at the same moment
        self._together(what, answer)

    def _together(self, what: str, answer: Answer) -> None:
        if self._domain.restarted(answer):
            self._domain.decided = False
            raise Restarted(f"{what}: a domain was begun anew; want recover() on all")

    def _look(self) -> None:
        """Finds out of which saves the parts are there. The record forgets nothing before all decide.

        It is written anew first: from here on it is this life's, and no earlier process writes it.
        """
        slots, there = [], self._record.read()
        self._write(there)
        for slot in there:
            gone = self._record.there(slot)
            if gone:
                warnings.warn(f"recover: this domain's part of save {slot.epoch} is not there any more: {gone}", RuntimeWarning, stacklevel=4)
            slots.append(replace(slot, gone=bool(gone)))
        self._take(tuple(slots))

    def _put(self, slots: Tuple[Slot, ...]) -> None:
        if slots != self._written:
            self._write(slots)
            self._untold = True
        self._take(slots)

    def _write(self, slots: Tuple[Slot, ...]) -> None:
        self._written = None  # until it is there for certain
        try:
            self._record.write(slots, self._domain.life)
        except RuntimeError:  # another process is the domain
            self._domain.decided = False
            raise
        self._written = slots

    def _take(self, slots: Tuple[Slot, ...]) -> None:
        self._domain.wrote(slots)
        self._held = tuple(self._domain.epochs())

    def _reflect(self, epoch: int, end: float, what: str) -> None:
        """Goes on with a save until it is committed here."""
        if self._domain.state(epoch) != COMMITTED:

            def committed(answer: Answer) -> bool:
                self._together(what, answer)
                slots = self._domain.advance(answer)
                if slots is not None:
                    self._put(slots)
                return self._domain.state(epoch) == COMMITTED

            self._until(committed, lambda: {"for": self._domain.waits(epoch), "epoch": epoch}, end, what)
        self._tell(end)

    def _idle(self) -> None:
        """Goes on where the call that began has given up, and lets others go on."""
        if not self._mutex.acquire(blocking=False):
            return  # a call tells
        with self._doing():
            answer = self._tell() if self._record.open and self._domain.decided else None
            slots = None if answer is None or self._domain.restarted(answer) else self._domain.advance(answer)
            if slots is not None:
                self._put(slots)

    def _tell(self, end: float = float("inf")) -> Optional[Answer]:
        """Lets others see how far this domain is, where it need not wait for them."""
        try:
            return self._exchange({}, 0.0, min(end, time.monotonic() + _BRIEF - _GRACE))
        except (Refused, Unreachable):
            return None  # it is told again

    def _farewell(self) -> None:
        """Tells once more what could not be told: nobody else will ever know."""
        end = max(self._leave_by, time.monotonic() + _GRACE)
        while self._untold and time.monotonic() < end:
            if self._tell(end - _GRACE) is None:
                time.sleep(_PAUSE)

    def _exchange(self, wait: Dict[str, Any], seconds: float, end: float) -> Answer:
        """Tells how far this domain is; the answer comes within seconds and the way, or the call's time."""
        if self._service.ended():
            raise Unreachable("the committer is closed, or a call waits for it")
        message = {**self._names, **self._domain.message(), **wait}
        try:
            answer = self._service.exchange(message, min(time.monotonic() + seconds + PATIENCE, end + _GRACE))
        except Refused:
            self._untold = False  # and will not be heard
            raise
        self._untold = False
        return answer

    def _until(self, met: Callable[[Answer], bool], wait: Callable[[], Dict[str, Any]], end: float, what: str) -> Answer:
        """Tells how far this domain is, again and again, until an answer is what is waited for."""
        pause, answer = _PAUSE, None
        while True:
            self._check(what)
            left = max(0.0, end - time.monotonic())
            wanted = {**wait(), "seconds": min(MAX_WAIT, left), "missing": left <= MAX_WAIT}
            was, began, problem = self._domain.progress(), time.monotonic(), ""
            try:
                answer = self._exchange({"wait": wanted}, wanted["seconds"], end)
                if met(answer):
                    return answer
            except Unreachable as e:
                self._check(what)
                problem = str(e)
            if self._domain.progress() != was:
                pause = _PAUSE
            elif time.monotonic() >= end:
                raise _late(what, answer, problem)
            elif time.monotonic() - began < wanted["seconds"] / 2:  # it answered at once, or not at all
                self._rest(min(pause, left))
                pause = min(2 * pause, _MAX_PAUSE)

    def _rest(self, seconds: float) -> None:
        """Sleeps until it is over, or the committer is closed."""
        end = time.monotonic() + seconds
        while not self._closing and time.monotonic() < end:
            time.sleep(max(0.0, min(_PIECE, end - time.monotonic())))


def _late(what: str, answer: Optional[Answer], problem: str) -> NotConfirmed:
    if problem:
        return NotConfirmed(f"{what}: {problem}")
    if answer is None or not answer.missing_count:
        return NotConfirmed(f"{what}: not confirmed in time")
    names = ", ".join(answer.missing) or "none of them heard of"
    text = f"{what}: waited for {answer.missing_count} of {answer.domains} domains ({names})"
    if answer.heard < answer.domains:
        text += f"; {answer.domains - answer.heard} were not heard of"
    return NotConfirmed(text, answer.missing)


def _name(what: str, name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"commit: {what}: got {type(name).__name__}; want text")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError(f"commit: {what}: got {name!a:.80}; want text") from None
    if not 0 < size <= _MAX_NAME or any(ord(c) < 32 or 127 <= ord(c) < 160 for c in name):
        raise ValueError(f"commit: {what}: got {name!a:.80}; want 1 to {_MAX_NAME} bytes of text without control characters")
    return name


class _Heart:
    """Tells now and then how far a domain is: a service that was begun anew knows of nobody."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell, self._end = tell, threading.Event()
        self._thread: Optional[threading.Thread] = None

    def beat(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="lockstep-commit", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        warned = False
        while not self._end.wait(_BEAT):
            try:
                self._tell()
            except Exception as e:  # who dies of it keeps all others waiting
                if not warned:
                    _warn(f"commit: {e}; it is tried again")
                warned = True

    def stop(self) -> None:
        self._end.set()


def _warn(text: str) -> None:
    """Warns where nobody could catch it if warnings are errors."""
    with contextlib.suppress(Warning):
        warnings.warn(text, RuntimeWarning, stacklevel=1)


_open: "weakref.WeakSet[Committer]" = weakref.WeakSet()


def _after_fork() -> None:
    for committer in list(_open):
        committer._forked()


os.register_at_fork(after_in_child=_after_fork)
