#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a Python program with room for NCCL's shared memory: room.py MIB PROGRAM [ARGUMENT ...]

NCCL reserves 33 MB or more of /dev/shm for each communicator whose rank is alone on its
host, as ranks of one GPU pretend to be, and ends where it is less: containers often have
64 MiB in all. Where fewer than MIB are free, the program gets a /dev/shm of its own, which
takes root. It runs in any case, and a line on stderr reports how.
"""

import ctypes
import os
import sys

SHM = "/dev/shm"
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
OWN_MIB = 2048  # taken only as it is used


def free_mib():
    seen = os.statvfs(SHM)
    return seen.f_bavail * seen.f_frsize >> 20


def in_use(words):
    """Returns the first word that names a file of /dev/shm, which would not be there any more."""
    return next((word for word in words if SHM + "/" in word), "")


def check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def own_shm():
    library = ctypes.CDLL(None, use_errno=True)
    library.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
    check(library.unshare(CLONE_NEWNS), "unshare mounts")
    check(library.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "make mounts private")
    check(library.mount(b"tmpfs", SHM.encode(), b"tmpfs", 0, b"size=%dm,mode=1777" % OWN_MIB), f"mount {SHM}")


def make_room(least, words):
    """Returns what was done, for people; empty where there is room."""
    before = free_mib()
    if before >= least:
        return ""
    used = in_use(words)
    if used:
        return f"{SHM} has {before} MiB free, and is kept: {used} is there"
    own_shm()
    return f"{SHM} had {before} MiB free; the program has {free_mib()} of its own"


def main():
    try:
        done = make_room(int(sys.argv[1]), [*sys.argv[2:], *os.environ.values(), os.getcwd()])
    except Exception as error:
        done = f"make room in {SHM}: {type(error).__name__}: {error}"
    if done:
        print("room.py:", done, file=sys.stderr, flush=True)
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])


if __name__ == "__main__":
    main()
