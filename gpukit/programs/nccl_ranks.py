#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One rank that does a known list of operations, and writes down what it did.

With a GPU by torch.distributed and NCCL; with --plugin by calling a profiler plugin as
NCCL does. The file truth-RANK.json in --folder is replaced after each phase. Times are ns
of CLOCK_MONOTONIC_RAW. Needs Python 3.9 or later, and PyTorch for the GPU.
"""

import argparse
import json
import os
import sys
import time
from datetime import timedelta

SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "uint8": 1}
NAMES = {
    "float32": "ncclFloat32",
    "bfloat16": "ncclBfloat16",
    "float16": "ncclFloat16",
    "int64": "ncclInt64",
    "uint8": "ncclUint8",
}
AS_BYTES = ("AllGather", "Broadcast")  # NCCL moves these as bytes, whatever their type
LATE_S = 0.8  # how long the last rank sleeps on purpose
LATE_BYTES = 24_576
OPEN_BYTES = 40_960
WAIT_S = 25  # for a word of the caller
WARM, BURST = 30, 20
SETTLE_S = 1.3  # in which the plugin infers ends that NCCL does not report


def raw():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def wait_for(path, limit=WAIT_S):
    """Returns whether the file came to be within limit seconds."""
    end = time.monotonic() + limit
    while not os.path.exists(path):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Cuda:
    """NCCL on the first GPU, by way of PyTorch."""

    def __init__(self, args):
        import torch
        import torch.distributed as dist

        self.torch, self.dist = torch, dist
        torch.cuda.set_device(0)
        dist.init_process_group(
            "nccl",
            init_method=f"file://{args.folder}/store",
            rank=args.rank,
            world_size=args.world,
            timeout=timedelta(seconds=args.timeout),
        )
        version = torch.cuda.nccl.version()
        self.about = {"backend": "nccl", "torch": torch.__version__, "nccl": ".".join(str(n) for n in version)}
        self.tensors = {}

    def group(self, name, ranks):
        """Returns the group; its communicator is made by its first operation."""
        return self.dist.group.WORLD if name == "world" else self.dist.new_group(ranks)

    def tensor(self, count, dtype, slot):
        key = (count, dtype, slot)
        if key not in self.tensors:
            self.tensors[key] = self.torch.ones(count, dtype=getattr(self.torch, dtype), device="cuda:0")
            self.torch.cuda.synchronize()
        return self.tensors[key]

    def prepare(self, call, size):
        """Returns a function without arguments that makes the call; memory is there before."""
        dist, group, dtype, counts = self.dist, call["handle"], call["dtype"], call["counts"]
        kind, count = call["kind"], counts[0]
        if kind == "all_reduce":
            data = self.tensor(count, dtype, "data")
            return lambda: dist.all_reduce(data, group=group)
        if kind == "reduce":
            data = self.tensor(count, dtype, "data")
            return lambda: dist.reduce(data, dst=call["root"], group=group)
        if kind == "broadcast":
            data = self.tensor(count, dtype, "data")
            return lambda: dist.broadcast(data, src=call["root"], group=group)
        if kind == "all_gather":
            out, data = self.tensor(count * size, dtype, "out"), self.tensor(count, dtype, "data")
            return lambda: dist.all_gather_into_tensor(out, data, group=group)
        if kind == "reduce_scatter":
            out, data = self.tensor(count, dtype, "out"), self.tensor(count * size, dtype, "data")
            return lambda: dist.reduce_scatter_tensor(out, data, group=group)
        if kind == "exchange":
            ops = [
                dist.P2POp(dist.isend, self.tensor(count, dtype, "data"), call["next"], group),
                dist.P2POp(dist.irecv, self.tensor(count, dtype, "in"), call["previous"], group),
            ]
            return lambda: [work.wait() for work in dist.batch_isend_irecv(ops)]
        if kind == "coalesced":
            return lambda: self.coalesced([self.tensor(n, dtype, i) for i, n in enumerate(counts)], group)
        raise ValueError(f"got {kind}")

    def coalesced(self, tensors, group):
        with self.dist._coalescing_manager(group=group):
            for tensor in tensors:
                self.dist.all_reduce(tensor, group=group)

    def synchronize(self):
        self.torch.cuda.synchronize()

    def log(self):
        return []

    def close(self):
        self.dist.destroy_process_group()


class StandIn:
    """The plugin alone, called as NCCL 2.28 calls it."""

    def __init__(self, args):
        import nccl_plugin

        self.module, self.args = nccl_plugin, args
        self.plugin = nccl_plugin.Plugin(args.plugin)
        self.about = {"backend": "stand-in", "torch": "", "nccl": ""}
        self.communicators = []

    def group(self, name, ranks):
        if self.args.rank not in ranks:
            return None
        made = self.module.Communicator(self.plugin, self.args.folder, name, len(ranks), ranks.index(self.args.rank))
        self.communicators.append(made)
        return made

    def prepare(self, call, size):
        if size == 1 and call["kind"] != "exchange":
            return lambda: None  # NCCL copies, and calls no profiler
        dtype = call["dtype"]
        ops = [(o["function"], o["bytes"] // SIZES[dtype], SIZES[dtype], NAMES[dtype], o["peer"]) for o in ops_of(call)]
        return lambda: call["handle"].enqueue(ops)

    def synchronize(self):
        for c in self.communicators:
            c.synchronize()

    def log(self):
        return self.plugin.log

    def close(self):
        for c in self.communicators:
            c.close()


FUNCTIONS = {
    "all_reduce": "AllReduce",
    "reduce": "Reduce",
    "broadcast": "Broadcast",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "coalesced": "AllReduce",
}


def ops_of(call):
    """Returns the operations that NCCL makes of a call, with bytes as NCCL counts them.

    Of a gather that is what a rank gives, of a scatter what it gets.
    """
    size = SIZES[call["dtype"]]
    if call["kind"] == "exchange":
        count = call["counts"][0] * size
        return [
            {"function": "Send", "bytes": count, "peer": call["next"]},
            {"function": "Recv", "bytes": count, "peer": call["previous"]},
        ]
    function, peer = FUNCTIONS[call["kind"]], call.get("root", 0)
    return [{"function": function, "bytes": n * size, "peer": peer} for n in call["counts"]]


def listed(world):
    """Returns the calls of the list: (kind, group, counts, dtype, root)."""
    calls = [
        ("all_reduce", "world", [1024], "float32", 0),
        ("all_reduce", "world", [4096], "bfloat16", 0),
        ("all_reduce", "world", [1 << 18], "float32", 0),
        ("all_reduce", "world", [256], "int64", 0),
        ("all_gather", "world", [4096], "float32", 0),
        ("all_gather", "world", [1000], "bfloat16", 0),
        ("reduce_scatter", "world", [8192], "float32", 0),
        ("reduce_scatter", "world", [2048], "float16", 0),
        ("broadcast", "world", [1000], "float32", 0),
        ("broadcast", "world", [100_000], "uint8", world - 1),
        ("reduce", "world", [3000], "float32", 0),
        ("coalesced", "world", [100, 20_000, 3000], "float32", 0),
    ]
    if world > 1:
        calls += [
            *MESSAGES,
            ("all_reduce", "pair", [512], "float32", 0),
            ("broadcast", "pair", [640], "int64", 1),
            ("all_reduce", "pair", [9000], "float32", 0),
        ]
    return calls


MESSAGES = [("exchange", "world", [5000], "float32", 0), ("exchange", "world", [70_000], "float32", 0)]


class Rank:
    def __init__(self, args):
        self.args = args
        self.device = StandIn(args) if args.plugin else Cuda(args)
        pair = list(range(min(2, args.world)))
        self.groups = {"world": list(range(args.world))}
        if args.world > 1:
            self.groups["pair"] = pair
        self.handles = {name: self.device.group(name, ranks) for name, ranks in self.groups.items()}
        self.truth = {
            "format": 1,
            "rank": args.rank,
            "world": args.world,
            "pid": os.getpid(),
            **self.device.about,
            "groups": [
                {"name": name, "size": len(ranks), "rank": ranks.index(args.rank)}
                for name, ranks in self.groups.items()
                if args.rank in ranks
            ],
            "calls": 0,
            "ops": [],
            "phases": [],
            "ended": False,
            "error": "",
            "log": [],
            "late_rank": args.world - 1,
            "late_ns": int(LATE_S * 1e9),
        }

    def call(self, kind, group, counts, dtype, root=0):
        size, me = len(self.groups[group]), self.args.rank
        return {
            "kind": kind,
            "group": group,
            "counts": counts,
            "dtype": dtype,
            "root": root,
            "handle": self.handles[group],
            "next": (me + 1) % size,
            "previous": (me - 1) % size,
        }

    def do(self, phase, *what, wait=True):
        """Makes one call and notes its operations; returns them."""
        call = self.call(*what)
        if self.args.rank not in self.groups[call["group"]]:
            return []
        function = self.device.prepare(call, len(self.groups[call["group"]]))
        before = raw()
        function()
        called = raw()
        if wait:
            self.device.synchronize()
        after = raw()
        self.truth["calls"] += 1
        noted = [
            {
                "phase": phase,
                "call": self.truth["calls"],
                "group": call["group"],
                "before_ns": before,
                "called_ns": called,
                "after_ns": after,
                "dtype": "ncclInt8" if op["function"] in AS_BYTES else NAMES[call["dtype"]],
                **op,
            }
            for op in ops_of(call)
        ]
        self.truth["ops"] += noted
        return noted

    def phase_list(self):
        for what in listed(self.args.world):
            self.do("list", *what)

    def phase_self(self):
        """Messages of a single rank to itself, which NCCL may do by a kernel."""
        for what in MESSAGES:
            self.do("self", *what)

    def phase_burst(self):
        what = ("all_reduce", "world", [2048], "float32")
        noted = [op for _ in range(BURST) for op in self.do("burst", *what, wait=False)]
        self.device.synchronize()
        for op in noted:
            op["after_ns"] = raw()

    def phase_late(self):
        if self.args.rank == self.args.world - 1:
            time.sleep(LATE_S)
        self.do("late", "all_reduce", "world", [LATE_BYTES // 4], "float32")

    def phase_open(self):
        """The last rank joins when the caller has looked at what is open."""
        self.touch("open")
        if self.args.rank == self.args.world - 1:
            wait_for(os.path.join(self.args.folder, "join"))
        self.do("open", "all_reduce", "world", [OPEN_BYTES // 4], "float32")

    def phase_hold(self):
        """Stays until the caller has asked NCCL what was done."""
        self.touch("hold")
        wait_for(os.path.join(self.args.folder, "go"))

    def phase_loop(self):
        self.do("warm", "all_reduce", "world", [1024], "float32")  # makes the communicator
        what = ("exchange" if self.args.world == 1 else "all_reduce", "world", [16_384], "float32")
        for _ in range(WARM):
            self.do("warm", *what)
        self.truth["ops"].clear()
        for _ in range(self.args.ops):
            self.do("loop", *what)

    def touch(self, name):
        with open(os.path.join(self.args.folder, f"{name}-{self.args.rank}"), "w"):
            pass

    def save(self):
        self.truth["log"] = self.device.log()
        path = os.path.join(self.args.folder, f"truth-{self.args.rank}.json")
        with open(path + ".tmp", "w") as out:
            json.dump(self.truth, out)
        os.replace(path + ".tmp", path)

    def run(self):
        for phase in self.args.phases.split(","):
            getattr(self, "phase_" + phase)()
            self.truth["phases"].append(phase)
            self.save()
        if self.args.phases != "loop":
            time.sleep(SETTLE_S)
        self.device.close()
        self.truth["ended"] = True
        self.save()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--world", type=int, required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--phases", default="list")
    parser.add_argument("--plugin", default="", help="call this profiler plugin instead of NCCL")
    parser.add_argument("--ops", type=int, default=200)
    parser.add_argument("--timeout", type=int, default=60)
    args = parser.parse_args()
    rank = None
    try:
        rank = Rank(args)
        rank.run()
    except Exception as error:
        if rank is not None:
            rank.truth["error"] = f"{type(error).__name__}: {error}"
            rank.save()
        raise
    print(json.dumps({"rank": args.rank, "ops": len(rank.truth["ops"])}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
