# SPDX-License-Identifier: Apache-2.0

"""The record in which a domain writes down how far it is, and its parts' way to the disk."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import stat
import warnings
from typing import Any, Dict, Iterable, Optional, Sequence, Tuple
from urllib.parse import quote

from .bilateral import MAX_SLOTS, STATES, Part, Slot

FOLDER = ".lockstep-commit"

_MAX_RECORD = 1 << 20  # bytes; eight slots of 64 paths have less
_MAX_PARTS = 64
_VERSION = 1


class Record:
    """A file below folder that holds the slots of one domain. It is replaced as a whole.

    It belongs to who wrote it last: who finds another's in its place writes no more.
    """

    def __init__(self, folder: str, job: str, domain: str, domains: int) -> None:
        self._root = os.path.abspath(folder)
        self._folder = os.path.join(self._root, FOLDER)
        self._head = {"job": job, "domain": domain, "domains": domains}
        # A folder that is not there may be a disk that is not mounted, with all that was saved.
        if not os.path.isdir(self._root):
            raise FileNotFoundError(f"open folder {self._root}: got none; want one that is there")
        os.makedirs(self._folder, exist_ok=True)
        _sync(self._root)
        _sync_name(self._root)
        self.path = os.path.join(self._folder, quote(domain, safe=" ") + ".json")
        self._lock = _lock(self.path + ".lock")
        self._owner = os.getpid()
        self._written = False
        self._known: Tuple[Optional[bytes], ...] = ()  # what may be on the disk as far as this process knows
        self.open = True

    def close(self) -> None:
        """Leaves the domain to another process. In a fork, it stays with who opened it."""
        if self.open:
            if os.getpid() == self._owner:
                _unlock(self._lock)  # a fork may have the file open, too
            os.close(self._lock)
        self.open = False

    def read(self) -> Tuple[Slot, ...]:
        """Returns the slots that are written down, () where there is no record.

        Raises ValueError where the record is not right: who took it for none would forget a save that
        others rely on. Raises RuntimeError where this process wrote it, and another has since.
        """
        data = self._load()
        try:
            slots = () if data is None else self._parse(data)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise ValueError(f"read commit record {self.path}: {e}") from None
        if self._written:
            self._check("read", data)
        self._known = (data,)
        return slots

    def _load(self) -> Optional[bytes]:
        try:
            with open(self.path, "rb", opener=_open) as f:
                return f.read(_MAX_RECORD + 1)
        except FileNotFoundError:
            return None

    def _check(self, what: str, data: Optional[bytes]) -> None:
        if data not in self._known:
            raise RuntimeError(f"{what} commit record {self.path}: got {_whose(data)}; want what this process wrote or read last: another commits for this domain")

    def _parse(self, data: bytes) -> Tuple[Slot, ...]:
        if len(data) > _MAX_RECORD:
            raise ValueError(f"got more than {_MAX_RECORD} bytes; want at most so many")
        text, _, digest = data.rstrip(b"\n").rpartition(b"\n")
        want = hashlib.sha256(text).hexdigest()
        if digest != want.encode():
            raise ValueError(f"got checksum {digest[:64]!r}; want {want}")
        try:
            of = json.loads(text)
        except RecursionError:
            raise ValueError("got what nests too deeply; want an object of slots") from None
        if of["version"] != _VERSION:
            raise ValueError(f"got version {of['version']!r:.20}; want {_VERSION}")
        slots = tuple(_slot(s) for s in of["slots"])
        for name, value in self._head.items():
            if of[name] != value and slots:  # who holds nothing may become another
                raise ValueError(f"got {name} {of[name]!r:.80}; want {value!r}")
        if len(slots) > MAX_SLOTS or any(a.epoch >= b.epoch for a, b in zip(slots, slots[1:])):
            raise ValueError(f"got {len(slots)} slots of epochs {[s.epoch for s in slots]!r:.80}; want at most {MAX_SLOTS}, ascending")
        return slots

    def write(self, slots: Iterable[Slot], life: str) -> None:
        """Replaces the record, and returns once that would survive a loss of power.

        Raises RuntimeError, and changes nothing, where it is closed, or not what this process wrote or
        read last.
        """
        if not self.open:
            raise RuntimeError(f"write commit record {self.path}: it is closed")
        data = self._encode(slots, life)
        there = self._load()
        self._check("write", there)
        self._written, self._known = True, (there, data)  # either, until the new one is there for certain
        new = self.path + ".new"
        with open(new, "wb", opener=_open) as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.replace(new, self.path)
        _sync(self._folder)
        self._known = (data,)

    def _encode(self, slots: Iterable[Slot], life: str) -> bytes:
        of: Dict[str, Any] = {"version": _VERSION, **self._head, "life": life}
        of["slots"] = [
            {
                "epoch": s.epoch, "attempt": s.attempt, "state": s.state,
                "parts": [{"path": p.path, "files": p.files, "bytes": p.bytes} for p in s.parts],
            }
            for s in slots
        ]
        text = json.dumps(of).encode()
        if len(text) > _MAX_RECORD - 128:
            raise ValueError(f"write commit record {self.path}: got {len(text)} bytes; want at most {_MAX_RECORD - 128}: give folders instead of files")
        return text + b"\n" + hashlib.sha256(text).hexdigest().encode() + b"\n"

    def settle(self, paths: Sequence[str]) -> Tuple[Part, ...]:
        """Has what is below paths reach the disk, with the names that lead there, and returns it."""
        if not 0 < len(paths) <= _MAX_PARTS:
            raise ValueError(f"commit {len(paths)} paths: want 1 to {_MAX_PARTS}: give folders instead of files")
        return tuple(self._settle(path) for path in paths)

    def _settle(self, path: str) -> Part:
        relative = self._below(path)
        full = os.path.join(self._root, relative)
        files, size = _walk(full, sync=True)
        if files == 0:
            raise ValueError(f"commit {path}: got no file; want what was saved")
        above = full
        while above != self._root:
            above = os.path.dirname(above)
            _sync(above)
        return Part(relative, files, size)

    def _below(self, path: str) -> str:
        """Returns a path from the folder on, without detours: each of its folders is one to be synced."""
        full = os.path.join(self._root, path)
        relative = os.path.relpath(full, self._root)
        if relative.split(os.sep)[0] in (os.pardir, os.curdir, FOLDER):
            raise ValueError(f"commit {path}: want what is below {self._root}")
        really = os.path.realpath(full)
        if really != os.path.join(os.path.realpath(self._root), relative):
            raise ValueError(f"commit {path}: got a link, to {really}; want none at or above what was saved")
        return relative

    def there(self, slot: Slot) -> str:
        """Returns what of a slot's parts is there no more; empty where all is."""
        for p in slot.parts:
            try:
                files, size = _walk(os.path.join(self._root, p.path), sync=False)
            except (OSError, ValueError) as e:
                return f"{p.path}: {e}"
            if files < p.files or size < p.bytes:
                return f"{p.path}: got {files} files with {size} bytes; want {p.files} with {p.bytes}"
        return ""


def _whose(data: Optional[bytes]) -> str:
    if data is None:
        return "none"
    try:
        return f"one of life {json.loads(data.splitlines()[0])['life']!r:.80}"
    except (IndexError, ValueError, KeyError, TypeError, RecursionError):
        return "another"


def _slot(s: Any) -> Slot:
    epoch, attempt, state = s["epoch"], s["attempt"], s["state"]
    if type(epoch) is not int or epoch < 0 or type(attempt) is not str or state not in STATES:
        raise ValueError(f"got slot {s!r:.80}; want an epoch, an attempt and a state")
    parts = tuple(Part(p["path"], p["files"], p["bytes"]) for p in s["parts"])
    if any(type(p.path) is not str or type(p.files) is not int or type(p.bytes) is not int for p in parts):
        raise ValueError(f"got parts {s['parts']!r:.80}; want path, files and bytes")
    return Slot(epoch, attempt, state, parts)


def _walk(path: str, sync: bool) -> Tuple[int, int]:
    """Returns how many files are at and below path, and their bytes.

    Who syncs wants nothing else there: what a link leads to would not be on the disk. Who looks later
    does not mind what was put beside.
    """
    if stat.S_ISREG(os.lstat(path).st_mode):
        return 1, _size(path, sync)
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise ValueError(f"got {path}, neither a file nor a folder; want one")
    files = size = 0
    for folder, folders, names in os.walk(path, onerror=_raise):
        for full in (os.path.join(folder, name) for name in folders + names):
            mode = os.lstat(full).st_mode
            if stat.S_ISREG(mode):
                files, size = files + 1, size + _size(full, sync)
            elif sync and not stat.S_ISDIR(mode):
                raise ValueError(f"got {full}, neither a file nor a folder; want nothing else below {path}")
        if sync:
            _sync(folder)
    return files, size


def _size(path: str, sync: bool) -> int:
    if sync:
        _sync(path)
    return os.lstat(path).st_size


def _raise(e: OSError) -> None:
    raise e


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as e:
        if e.errno not in (errno.EINVAL, errno.ENOTSUP) or not stat.S_ISDIR(os.fstat(fd).st_mode):
            raise
        warnings.warn(f"sync folder {path}: {e.strerror}; names in it may be lost with the power", RuntimeWarning, stacklevel=3)
    finally:
        os.close(fd)


def _sync_name(folder: str) -> None:
    """Has the name of a folder reach the disk: the job may just have made it."""
    try:
        _sync(os.path.dirname(os.path.realpath(folder)))
    except PermissionError:
        pass  # a folder that cannot be read: who made what is in it was somebody else


def _open(path: str, flags: int) -> int:
    """Opens a regular file. Anything else is refused; that of a pipe would wait for its other end for ever."""
    try:
        fd = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as e:
        if e.errno not in (errno.ENXIO, errno.EISDIR):  # a pipe that nobody reads or a socket; a folder
            raise
        raise _irregular(path) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _irregular(path)
    return fd


def _irregular(path: str) -> ValueError:
    return ValueError(f"open {path}: got no regular file; want one, or nothing there")


def _lock(path: str) -> int:
    """Keeps another process from being the same domain. The kernel takes it back when this one ends."""
    fd = _open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise RuntimeError(f"lock {path}: another process commits for this domain; want one") from None
    except OSError as e:
        warnings.warn(f"lock {path}: {e}; nothing keeps a second process away", RuntimeWarning, stacklevel=4)
    return fd


def _unlock(fd: int) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_UN)
    except OSError:
        pass  # there are no locks here
