"""A rank that recovers and saves.

With RUN and SAVES as arguments, once, in this process. Without, again and again, each time in
a process of its own: reads lines "RUN SAVES DIE". That process is killed before the DIE-th thing
that it does to disk or network. Prints "began PID"; what it recovered, with what its part of that
save holds, and what it committed; and "ended STATUS".
"""

import http.client
import os
import shutil
import signal
import sys
import traceback

from lockstep_scope import records
from lockstep_scope.commit import Committer

rank, world, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
done = die = 0


def deadly(f):
    def g(*args, **kw):
        global done
        done += 1
        if done == die:
            os.kill(os.getpid(), signal.SIGKILL)
        return f(*args, **kw)

    return g


connection = http.client.HTTPConnection
connection.request, connection.getresponse = deadly(connection.request), deadly(connection.getresponse)
os.fsync, os.replace, records.open = deadly(os.fsync), deadly(os.replace), deadly(open)


def say(*words):
    """Writes a line at once: of a process that is killed there is no half of one."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def part(epoch):
    return os.path.join(folder, f"step-{epoch}", f"rank-{rank}")


def sweep(committer):
    for name in os.listdir(folder):
        if name.startswith("step-") and int(name[5:]) not in committer.held():
            shutil.rmtree(part(int(name[5:])), ignore_errors=True)


def work(run, saves):
    with Committer("job", f"rank {rank}", world, folder) as committer:
        found = committer.recover(timeout=60)
        holds = ""
        if found.epoch is not None:
            with open(os.path.join(part(found.epoch), "data")) as f:
                holds = f.read()
        say("recovered", found.epoch or 0, holds)
        sweep(committer)
        epoch = found.epoch or 0
        for _ in range(saves):
            epoch += 10
            os.makedirs(part(epoch))
            with open(os.path.join(part(epoch), "data"), "w") as f:
                f.write(f"{run} {epoch} ")
                f.write("end")
            committer.commit(epoch, [part(epoch)], timeout=60)
            say("committed", epoch)
            sweep(committer)


def serve():
    global die
    for line in sys.stdin:
        run, saves, when = line.split()
        child = os.fork()
        if child == 0:
            status, die = 1, int(when)
            try:
                work(run, int(saves))
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        say("began", child)
        say("ended", os.waitpid(child, 0)[1])


if len(sys.argv) > 4:
    work(sys.argv[4], int(sys.argv[5]))
else:
    serve()
