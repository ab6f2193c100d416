#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank of a job whose Flight Recorder is dumped: in good order, or in a hang made on purpose.

With a GPU by NCCL, whose watchdog writes the dumps of a hang; with --cpu by Gloo, where
each rank writes its own. A rank ends by itself once all dumps are there. What the rank did
is in truth-RANK.json in --folder; times are ns since 1970. Needs PyTorch.
"""

import argparse
import json
import os
import resource
import sys
import threading
import time
from datetime import timedelta

PREFIX = "nccl_trace_rank_"
DOOMED = 7_777  # elements of the operation that hangs
QUIET_S = 1.5  # a dump that has not changed for so long is whole
SLEEP_S = 12.0  # of the device at least, on purpose; it ends by itself
MOST_HZ = 2_000_000_000  # a clock that is measured just now may still rise
SETTLE_S = 1.0  # in which the watchdog sees what is done


class Cuda:
    backend = "nccl"

    def __init__(self, torch):
        self.torch = torch
        torch.cuda.set_device(0)
        self.device = "cuda:0"

    def synchronize(self):
        self.torch.cuda.synchronize()

    def dump(self):
        from torch._C._distributed_c10d import _dump_nccl_trace

        return _dump_nccl_trace(includeCollectives=True, includeStackTraces=True, onlyActive=False)

    def writes_by_itself(self):
        return True

    def occupy(self):
        """Has the device spin for SLEEP_S seconds or more on the current stream; returns at once."""
        self.torch.cuda._sleep(int(SLEEP_S * MOST_HZ))


class Cpu:
    backend = "gloo"

    def __init__(self, torch):
        del torch
        self.device = "cpu"

    def synchronize(self):
        pass

    def dump(self):
        from torch._C._distributed_c10d import _dump_fr_trace

        return _dump_fr_trace(includeCollectives=True, includeStackTraces=False, onlyActive=False)

    def writes_by_itself(self):
        return False

    def occupy(self):
        raise NotImplementedError("there is no device to occupy")


class Rank:
    def __init__(self, args):
        import torch
        import torch.distributed as dist

        self.args, self.torch, self.dist = args, torch, dist
        self.device = Cpu(torch) if args.cpu else Cuda(torch)
        # Setting up may take long; the operation that hangs has a time limit of its own.
        dist.init_process_group(
            self.device.backend,
            init_method=f"file://{args.folder}/store",
            rank=args.rank,
            world_size=args.world,
            timeout=timedelta(seconds=60),
        )
        self.truth = {
            "rank": args.rank,
            "world": args.world,
            "backend": self.device.backend,
            "torch": torch.__version__,
            "nccl": "" if args.cpu else ".".join(str(n) for n in torch.cuda.nccl.version()),
            "ops": [],
            "timeout_ms": 0,
            "doomed": None,
            "missing_rank": 0,
            "dumped_ns": 0,
            "error": "",
        }

    def ones(self, count, dtype="float32"):
        return self.torch.ones(count, dtype=getattr(self.torch, dtype), device=self.device.device)

    def do(self, name, dtype, count, out, call):
        """Makes a call that is over when it returns, and notes it."""
        before = time.time_ns()
        call()
        self.device.synchronize()
        self.truth["ops"].append(self.note(name, dtype, count, out, before, time.time_ns()))

    def note(self, name, dtype, count, out, before, after):
        return {"name": name, "dtype": dtype, "in": [[count]], "out": [[out]], "before_ns": before, "after_ns": after}

    def good_order(self):
        dist, world = self.dist, self.args.world
        for count, dtype, name in ((1024, "float32", "Float"), (4096, "float64", "Double"), (256, "int64", "Long")):
            data = self.ones(count, dtype)
            self.device.synchronize()
            self.do("all_reduce", name, count, count, lambda data=data: dist.all_reduce(data))
        data = self.ones(640)
        self.do("broadcast", "Float", 640, 640, lambda: dist.broadcast(data, src=0))
        out, part = self.ones(512 * world), self.ones(512)
        self.do("all_gather", "Float", 512, 512 * world, lambda: dist.all_gather_into_tensor(out, part))

    def states(self):
        self.good_order()
        time.sleep(SETTLE_S)
        self.write(self.device.dump())
        self.save()

    def sleep(self):
        self.good_order()
        self.doom()
        self.device.occupy()
        self.dist.all_reduce(self.doomed)
        self.end_when_dumped()

    def missing(self):
        self.good_order()
        self.doom()
        threading.Thread(target=self.end_when_dumped, name="end", daemon=True).start()
        if self.args.rank != self.truth["missing_rank"]:
            self.dist.all_reduce(self.doomed)
            self.device.synchronize()
        threading.Event().wait()

    def doom(self):
        """Prepares the operation that will hang, and shortens its time limit."""
        self.doomed = self.ones(DOOMED)
        self.device.synchronize()
        self.truth["timeout_ms"] = 1000 * self.args.timeout
        self.truth["doomed"] = self.note("all_reduce", "Float", DOOMED, DOOMED, time.time_ns(), 0)
        if self.device.writes_by_itself():
            from torch.distributed.distributed_c10d import _set_pg_timeout

            _set_pg_timeout(timedelta(seconds=self.args.timeout), self.dist.group.WORLD)
        self.save()  # a watchdog may end the process: that it came so far is known then

    def path(self, rank):
        return os.path.join(self.args.folder, "dumps", PREFIX + str(rank))

    def write(self, content):
        with open(self.path(self.args.rank), "wb") as out:
            out.write(content)
        self.truth["dumped_ns"] = time.time_ns()

    def end_when_dumped(self):
        if not self.device.writes_by_itself():
            time.sleep(self.args.timeout)
            self.write(self.device.dump())
        end = time.monotonic() + self.args.timeout + self.args.grace
        while not all(self.whole(rank) for rank in range(self.args.world)):
            if time.monotonic() > end:
                self.truth["error"] = "not all dumps came in time"
                break
            time.sleep(0.1)
        self.truth["dumped_ns"] = time.time_ns()
        self.save()
        os._exit(3 if self.truth["error"] else 0)

    def whole(self, rank):
        try:
            seen = os.stat(self.path(rank))
        except OSError:
            return False
        return seen.st_size > 0 and time.time() - seen.st_mtime > QUIET_S

    def save(self):
        path = os.path.join(self.args.folder, f"truth-{self.args.rank}.json")
        with open(path + ".tmp", "w") as out:
            json.dump(self.truth, out)
        os.replace(path + ".tmp", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("states", "sleep", "missing"))
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--timeout", type=int, default=5, help="of the operation that hangs, s")
    parser.add_argument("--grace", type=int, default=14, help="for the dumps after that, s")
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a watchdog ends the process by abort
    os.makedirs(os.path.join(args.folder, "dumps"), exist_ok=True)
    rank = Rank(args)
    try:
        getattr(rank, args.mode)()
    except Exception as error:
        rank.truth["error"] = f"{type(error).__name__}: {error}"
        rank.save()
        raise
    rank.dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
