"""Kills the saves of a real framework: killed.py JOB FOLDER KILLS SEED

Imports the framework once, and has forks of this process be the ranks of a job that saves again and
again. Each job is killed, all its ranks at once and with SIGKILL, at a random moment between its first
save and some time after its last; one more is not. Prints one line of JSON for each:

    folder  where its saves are, below FOLDER
    killed  whether it was still at work
    begun   the epoch of the last save that any rank began
    done    the epoch of the last save that all ranks had done
    whole   the epochs whose parts are all there, and hold what a job that nobody killed had saved
    args    what `lockstep preflight` must be told of such a job

What is whole is decided by comparing contents with those of jobs that ended by themselves, each of
which is run twice: a job whose saves differ from run to run is an error.
"""

import importlib
import json
import os
import random
import select
import shutil
import signal
import socket
import sys
import time
import traceback

PATIENCE = 300.0  # seconds for one job: a framework that hangs is an error, not a wait for ever


class Report:
    """What a rank tells of its saves, through a pipe that outlives it."""

    def __init__(self, fd, rank):
        self._fd, self._rank = fd, rank

    def begin(self, epoch):
        self._tell("begin", epoch)

    def done(self, epoch):
        """Said of a save that is done, as far as this rank is concerned; then it trains for a while."""
        self._tell("done", epoch)
        time.sleep(0.02)

    def _tell(self, what, epoch):
        os.write(self._fd, f"{what} {self._rank} {epoch} {time.monotonic()}\n".encode())


class Run:
    """One life of a job: its ranks, and what they have told."""

    def __init__(self, job, folder, upto):
        os.makedirs(folder)
        self.job, self.folder, self.lines, self._rest = job, folder, [], b""
        self._pipe, write = os.pipe()
        self._pids = []
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        for rank in range(job.world):
            pid = os.fork()
            if pid == 0:
                self._be(rank, port, write, upto)
            os.setpgid(pid, self._pids[0] if self._pids else pid)
            self._pids.append(pid)
        os.close(write)

    def _be(self, rank, port, write, upto):
        try:
            os.close(self._pipe)
            os.environ.update(
                RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(self.job.world), LOCAL_WORLD_SIZE=str(self.job.world),
                MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
            )
            log = os.open(f"{self.folder}.{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.chdir(self.folder)
            self.job.run(rank, [e for e in self.job.epochs if e <= upto], Report(write, rank))
            with open(f"{self.folder}.{rank}.modules", "w") as f:
                json.dump(sorted(sys.modules), f)
            sys.stdout.flush()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)

    def read(self, until):
        """Reads what ranks tell, until a time, or until all have ended; returns whether they have."""
        while (left := until - time.monotonic()) > 0:
            if not select.select([self._pipe], [], [], left)[0]:
                return False
            data = os.read(self._pipe, 1 << 16)
            if not data:
                return True
            *lines, self._rest = (self._rest + data).split(b"\n")
            self.lines += [line.decode().split() for line in lines]
        return False

    def begun(self):
        return max((int(n) for what, _, n, _ in self.lines if what == "begin"), default=None)

    def done(self):
        by = [max((int(n) for what, r, n, _ in self.lines if what == "done" and int(r) == rank), default=-1) for rank in range(self.job.world)]
        return min(by) if min(by) >= 0 else None

    def span(self):
        """Returns for how long it was at work, from its first save to the end of its last."""
        times = [float(at) for _, _, _, at in self.lines]
        return max(times) - min(times)

    def kill(self):
        try:
            os.killpg(self._pids[0], signal.SIGKILL)
        except ProcessLookupError:
            pass

    def wait(self):
        """Waits for all ranks, and returns whether any was killed; raises where one failed by itself."""
        if not self.read(time.monotonic() + PATIENCE):
            self.kill()
        os.close(self._pipe)
        killed, failed = False, []
        for rank, pid in enumerate(self._pids):
            _, status = os.waitpid(pid, 0)
            if os.WIFSIGNALED(status):
                killed = True
            elif os.WEXITSTATUS(status) != 0:
                failed.append(rank)
        self.kill()  # what ranks have started, and left behind
        # Who loses a peer to the kill may fail of that first.
        if failed and not killed:
            with open(f"{self.folder}.{failed[0]}.log") as f:
                raise RuntimeError(f"rank {failed[0]} in {self.folder} failed: {f.read()[-4000:]}")
        return killed


def preload(folder):
    """Imports what a rank has imported on its way, so that no fork need do it again."""
    with open(f"{folder}.0.modules") as f:
        for name in json.load(f):
            if name not in sys.modules and not name.startswith("_"):
                try:
                    importlib.import_module(name)
                except Exception:  # it was made, not imported
                    pass


def reference(job, folder):
    """Returns the contents of each save, and for how long a job is at work on all of them."""
    contents, span = {}, 0.0
    for epoch in job.epochs:
        twice = []
        for n in range(2):
            run = Run(job, f"{folder}/reference-{epoch}-{n}", epoch)
            if run.wait() or run.done() != epoch:
                raise RuntimeError(f"{run.folder}: got no save of {epoch} within {PATIENCE} s")
            span = run.span()
            twice.append(job.content(run.folder, epoch))
            preload(run.folder)
        if twice[0] != twice[1] or not twice[0]:
            raise RuntimeError(f"save of {epoch} differs from run to run in {sorted(k for k in twice[0] if twice[0][k] != twice[1].get(k))}")
        contents[epoch] = twice[0]
    return contents, span


def whole(job, folder, contents):
    """Returns the epochs of which everything is there as a job that nobody killed saves it."""
    out = []
    for epoch, want in contents.items():
        try:
            got = job.content(folder, epoch)
        except Exception:  # whatever a reader raises of what is damaged
            continue
        if all(got.get(name) == value for name, value in want.items()):
            out.append(epoch)
    return out


def trial(job, folder, contents, after):
    """Has a job killed so long after its first save began."""
    run = Run(job, folder, job.epochs[-1])
    deadline = time.monotonic() + PATIENCE
    while not run.lines and time.monotonic() < deadline:
        if run.read(min(deadline, time.monotonic() + 0.05)):
            break
    if not run.read(time.monotonic() + after):
        run.kill()
    killed = run.wait()
    out = {
        "folder": os.path.relpath(os.path.join(folder, job.root), sys.argv[2]), "killed": killed, "begun": run.begun(), "done": run.done(),
        "whole": whole(job, folder, contents), "args": job.args,
    }
    print(json.dumps(out), flush=True)


def main():
    name, folder, kills, seed = sys.argv[1], os.path.abspath(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    module, _, kind = name.partition("/")
    job = importlib.import_module("jobs_" + module).jobs[kind]()
    contents, span = reference(job, folder)
    rng = random.Random(seed)
    for i in range(kills):
        trial(job, f"{folder}/{i}", contents, rng.uniform(0, 1.1 * span))
    trial(job, f"{folder}/{kills}", contents, PATIENCE)
    for epoch in job.epochs:
        for n in range(2):
            shutil.rmtree(f"{folder}/reference-{epoch}-{n}", ignore_errors=True)


if __name__ == "__main__":
    main()
