#!/usr/bin/env python3
"""Record a small data-parallel PyTorch training run, one profiler trace per rank.

A run is WORLD_SIZE processes on this machine, each training the same small
model under DistributedDataParallel on the CPU, with the gloo backend on the
loopback device and one compute thread per process. On request one rank stalls
for a fixed time, in every step, at one known place of its own Python code:
that is the truth a diagnosis of the recording is checked against.

The output directory receives rank<N>.json.gz, exactly what torch.profiler
exported; <out>.expected.json beside the folder states the truth from the flags.

Needs Python 3.9 or later and PyTorch; nothing else.
"""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset

PLACES = ("data", "forward", "optimizer")

# Four layers, each larger than a bucket, so that one backward pass starts four
# all-reduces, which their sizes tell apart. A step costs each rank about 2 ms
# of compute: eight ranks fit on two cores.
WIDTHS = (256, 192, 192, 160, 256)
BATCH = 64
BUCKET_MB = 0.1

# Steps before the recording: DDP regroups its buckets after the first one, and
# the profiler warms up (and drops what it sees) during the last two.
WAIT_STEPS = 4
WARMUP_STEPS = 2


class Stall:
    """Sleeps at one place of one rank; does nothing everywhere else."""

    def __init__(self, args, rank):
        self.place = args.slow_place if rank == args.slow_rank else None
        self.seconds = args.slow_ms / 1000

    def at(self, place):
        if place == self.place:
            time.sleep(self.seconds)


class Batches(Dataset):
    """Batch i of a rank: its contents depend on (seed, rank, i) alone."""

    def __init__(self, seed, rank, length, stall):
        self.first, self.length, self.stall = seed * 1_000_003 + rank * 1009, length, stall

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        self.stall.at("data")
        source = torch.Generator().manual_seed(self.first + index)
        inputs = torch.randn(BATCH, WIDTHS[0], generator=source)
        return inputs, inputs.roll(1, dims=1)


def build_model(seed):
    torch.manual_seed(seed)
    layers = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return DistributedDataParallel(torch.nn.Sequential(*layers[:-1]), bucket_cap_mb=BUCKET_MB)


def train(model, loader, stall, on_step):
    """Trains one epoch. Every rank opens the same four scopes in every step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = iter(loader)
    for _ in range(len(loader)):
        with record_function("data"):
            inputs, targets = next(batches)
        with record_function("forward"):
            stall.at("forward")
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
        with record_function("backward"):
            loss.backward()
        with record_function("optimizer"):
            stall.at("optimizer")
            optimizer.step()
            optimizer.zero_grad()
        on_step()


def run_rank(rank, args, rendezvous):
    torch.set_num_threads(1)
    # A relative trace name and no stacks: the trace holds no path of this machine.
    os.chdir(args.out)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}",
                            rank=rank, world_size=args.world_size)
    stall = Stall(args, rank)
    # One step more than is recorded keeps every rank until the last has recorded.
    steps = WAIT_STEPS + WARMUP_STEPS + args.steps + 1
    loader = DataLoader(Batches(args.seed, rank, steps, stall), batch_size=None)
    recorder = profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=WAIT_STEPS, warmup=WARMUP_STEPS, active=args.steps, repeat=1),
        on_trace_ready=lambda p: export(p, f"rank{rank}.json"),
        record_shapes=True,  # without it the all-reduces carry no sizes
        with_stack=False,
    )
    model = build_model(args.seed)
    with recorder:
        train(model, loader, stall, recorder.step)
    dist.destroy_process_group()


def export(recorder, name):
    recorder.export_chrome_trace(name)
    with open(name, "rb") as plain, gzip.GzipFile(name + ".gz", "wb", 9, mtime=0) as packed:
        shutil.copyfileobj(plain, packed)
    os.remove(name)


def write_expected(args):
    expected = {"slow_rank": args.slow_rank}
    if args.slow_rank is not None:
        expected |= {"place": args.slow_place, "class": "host", "slow_ms": args.slow_ms}
    text = json.dumps(expected, indent=2) + "\n"
    args.out.with_name(args.out.name + ".expected.json").write_text(text, encoding="utf-8")


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True, help="directory to write to")
    parser.add_argument("--seed", type=int, default=1, help="seed of weights and batches")
    parser.add_argument("--world-size", type=int, default=8, help="number of ranks")
    parser.add_argument("--steps", type=int, default=6, help="recorded training steps")
    parser.add_argument("--slow-rank", type=int, help="rank to slow down; none by default")
    parser.add_argument("--slow-place", choices=PLACES, default="data", help="where it stalls")
    parser.add_argument("--slow-ms", type=float, default=60, help="stall per step, milliseconds")
    args = parser.parse_args()
    if args.slow_rank is not None and not 0 <= args.slow_rank < args.world_size:
        parser.error(f"argument --slow-rank: got {args.slow_rank}; want 0 to {args.world_size - 1}")
    args.out = args.out.resolve()
    return args


def main():
    args = parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    # The loopback device for gloo; no chatter from the profiler's library.
    os.environ.update(GLOO_SOCKET_IFNAME="lo", KINETO_LOG_LEVEL="99")
    with tempfile.TemporaryDirectory() as scratch:
        # Forked rather than spawned: PyTorch is loaded once instead of nine times.
        mp.start_processes(run_rank, (args, f"{scratch}/rendezvous"),
                           nprocs=args.world_size, start_method="fork")
    write_expected(args)


if __name__ == "__main__":
    main()
