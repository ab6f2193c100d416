# SPDX-License-Identifier: Apache-2.0

"""Programs that run with the package and a ring of their own."""

import concurrent.futures
import contextlib
import importlib.util
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from . import ring

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
LIBRARY = os.environ.get("LOCKSTEP_TEST_LIBRARY") or str(PACKAGE.parents[1] / "bin/libnccl-profiler-lockstep.so")

needs_torch = unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")


def size(quick, full):
    """How often a test repeats, as internal/tier has it: LOCKSTEP_TESTS=full asks for the full tier."""
    tier = os.environ.get("LOCKSTEP_TESTS") or "quick"
    if tier not in ("quick", "full"):
        raise ValueError(f"read LOCKSTEP_TESTS: got {tier!r}; want quick or full")
    return full if tier == "full" else quick


full_tier = unittest.skipUnless(size(False, True), "the full tier has it: LOCKSTEP_TESTS=full")

# How long ranks may take together, seconds, and how long the others may take once one has failed.
RANKS_LIMIT = 150
FAILED_LIMIT = 10


def free_port():
    """A port that no connection gets by itself: those that the kernel gives away begin at 32768 on Linux.

    A port that bind(0) found can be taken by a connection of another program before rank 0 listens on it.
    """
    for _ in range(1000):
        port = random.randrange(26000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("find a free port: got none of 1,000 between 26000 and 32000")


def finish(processes):
    """Waits for processes that need one another, each a session of its own; returns what each printed on both streams.

    Once one has failed, or none ends in time, the others print their stacks (PYTHONFAULTHANDLER) and end.
    """
    with concurrent.futures.ThreadPoolExecutor(len(processes)) as pool:
        outputs = [pool.submit(process.communicate) for process in processes]
        try:
            end_together(processes)
        finally:
            for process in processes:
                process.kill()
                with contextlib.suppress(ProcessLookupError):  # its children hold the pipes, too
                    os.killpg(process.pid, signal.SIGKILL)
        return [output.result() for output in outputs]


def end_together(processes):
    end = time.monotonic() + RANKS_LIMIT
    while any(process.poll() is None for process in processes) and time.monotonic() < end:
        if any(process.poll() for process in processes):
            end = min(end, time.monotonic() + FAILED_LIMIT)
        time.sleep(0.02)
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGABRT)
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(FAILED_LIMIT)


class Case(unittest.TestCase):
    """A test that runs programs, and reads what they left."""

    def setUp(self):
        if not os.path.exists(LIBRARY):
            self.skipTest(f"{LIBRARY} is not there; `make inject` builds it")
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-"))
        self.addCleanup(shutil.rmtree, self.work)
        self.rings = self.work / "rings"
        self.rings.mkdir()
        self.programs = self.work / "programs"  # not the working directory
        self.programs.mkdir()

    def environment(self, **extra):
        """The variables of a program; None takes one away."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("LOCKSTEP_", "NCCL_", "TORCHELASTIC_"))}
        env.update(PYTHONPATH=str(PACKAGE), LOCKSTEP_DIR=str(self.rings), LOCKSTEP_LIBRARY=LIBRARY,
                   LOCKSTEP_RING_LANES="8", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo",
                   PYTHONWARNINGS="ignore:Failed to initialize NumPy")  # fmt: skip
        env.update(extra)
        return {k: v for k, v in env.items() if v is not None}

    def script(self, code, name="program.py"):
        path = self.programs / name
        whole = path.with_suffix(".new")  # a rank that has started may be about to read path
        whole.write_text(textwrap.dedent(code), encoding="utf-8")
        whole.replace(path)
        return str(path)

    def start(self, code, *arguments, under=(), stdin=None, session=False, **env):
        """Starts a program, through `python -m lockstep_scope` where under holds its options."""
        prefix = ["-m", "lockstep_scope", *under] if under is not None else []
        return subprocess.Popen([sys.executable, *prefix, self.script(code), *arguments], env=self.environment(**env),
                                stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.work,
                                start_new_session=session)  # fmt: skip

    def run_program(self, code, *arguments, status=0, **options):
        """Runs one to its end, and returns what it printed on each stream."""
        process = self.start(code, *arguments, **options)
        output = process.communicate(timeout=300)
        self.assertEqual(process.returncode, status, output[1])
        return output

    def run_ranks(self, code, size, **options):
        """Runs one process per rank; returns what each printed."""
        launch = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size), "PYTHONFAULTHANDLER": "1"}
        ranks = [self.start(code, session=True, RANK=str(rank), **launch, **options) for rank in range(size)]
        outputs = finish(ranks)
        failed = [f"rank {rank}: status {process.returncode}: {errors}"
                  for rank, (process, (_, errors)) in enumerate(zip(ranks, outputs)) if process.returncode]  # fmt: skip
        self.assertFalse(failed, "\n".join(failed))
        return [out for out, _ in outputs]

    def ring(self):
        """The only ring."""
        rings = ring.read(self.rings)
        self.assertEqual(len(rings), 1)
        return rings[0]
