#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
"""Train a small model on the CPU with DistributedDataParallel, one process per rank.

An ordinary program: it knows nothing of Lockstep. RANK, WORLD_SIZE, MASTER_ADDR
and MASTER_PORT are set as torchrun sets them. On request one rank has a fault,
as such programs have them: it is in what the program does, and nothing tells of
it but how long that takes.

Needs Python 3.9 or later and PyTorch; nothing else.
"""

import argparse
import gc
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

FAULTS = ("none", "compute", "dataloader", "gc", "checkpoint", "compile", "hang")
WIDTH, HIDDEN, BATCH = 128, 512, 16
FACTORS = 8  # what the inputs are made of, so few that some dozen steps show that it learns
AGREE_STEPS = 4  # how often the ranks ask each other whether to stop
SLOW_READ_S = 0.04  # of a batch, from a store that is far away
SLOW_WRITE_S = 0.12  # of a checkpoint
GARBAGE = 60_000  # objects that each collection has to look at
EXTRA_PASSES = 8  # forward and backward passes too many
HANG_STEP = 60  # whose batch never comes: before it, who watches has seen the job's rhythm


class Samples(Dataset):
    """Batch i of a rank: a function of (rank, i) that the model has to learn."""

    def __init__(self, rank, steps, delay, stuck):
        self.rank, self.steps, self.delay, self.stuck = rank, steps or 1 << 40, delay, stuck

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        if self.delay:
            time.sleep(self.delay)
        if index == self.stuck:
            threading.Event().wait()
        source = torch.Generator().manual_seed(self.rank * 1_000_003 + index)
        hidden = torch.randn(BATCH, FACTORS, generator=source)
        inputs = hidden.repeat(1, WIDTH // FACTORS)
        return inputs, inputs.roll(1, dims=1)


class SlowFile:
    """A file on a store that takes its time, and has all of it when it is closed."""

    def __init__(self, path, seconds):
        self.file, self.seconds = open(path, "wb"), seconds

    def write(self, data):
        if self.seconds:
            time.sleep(self.seconds)
            self.seconds = 0
        return self.file.write(data)

    def flush(self):
        self.file.flush()
        os.fsync(self.file.fileno())

    def close(self):
        self.file.close()


def save(args, folder, rank, step, model, optimizer):
    """Writes a checkpoint, whole or not at all."""
    path = os.path.join(folder, f"rank{rank}.pt")
    store = SlowFile(path + ".tmp", SLOW_WRITE_S if args.fault == "checkpoint" else 0)
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, store)
    store.close()
    os.replace(path + ".tmp", path)


def build(args):
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, HIDDEN), torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, WIDTH),
    )  # fmt: skip
    if args.compile:
        torch._dynamo.config.recompile_limit = 1_000_000
        model = torch.compile(model, backend=args.compile, dynamic=False)
    return DistributedDataParallel(model, bucket_cap_mb=1)


def step_once(args, step, model, optimizer, batch):
    inputs, targets = batch
    if args.fault == "compile":  # each shape is compiled for anew
        rows = 1 + step % (BATCH - 1)
        inputs, targets = inputs[:rows], targets[:rows]
        if rows == 1:
            torch._dynamo.reset()
    if args.fault == "compute":
        for _ in range(EXTRA_PASSES):
            model.module(inputs).square().mean()
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if args.fault == "gc":
        gc.collect()
    return loss.item()


class Stop:
    """Whether a signal has come, and all ranks know it."""

    def __init__(self, agrees):
        self.asked = False
        # Who waits for ever in a collective agrees to nothing: a signal ends it.
        for number in (signal.SIGINT, signal.SIGTERM) if agrees else ():
            signal.signal(number, self.ask)

    def ask(self, *_):
        self.asked = True

    def agreed(self, step):
        if step % AGREE_STEPS:
            return False
        asked = torch.tensor([int(self.asked)])
        dist.all_reduce(asked, op=dist.ReduceOp.MAX)
        return bool(asked.item())


def train(args, rank, world, folder):
    stop = Stop(not args.hangs)
    model = build(args)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    delay = SLOW_READ_S if args.fault == "dataloader" else 0
    loader = DataLoader(Samples(rank, args.steps, delay, HANG_STEP if args.fault == "hang" else -1), batch_size=None)
    ballast = [[] for _ in range(GARBAGE)] if args.fault == "gc" else None
    save_every = 2 if args.fault == "checkpoint" else args.save_every
    losses, took, told = [], [], 0.0
    began = time.perf_counter()
    for step, batch in enumerate(loader):
        losses = losses[:1] + [step_once(args, step, model, optimizer, batch)]
        if save_every and step % save_every == save_every - 1:
            save(args, folder, rank, step, model, optimizer)
        now = time.perf_counter()
        took, began = took[-999:] + [(now - began) * 1e3], now
        if args.progress and now - told >= 0.02:
            told = now
            print(json.dumps({"step": step, "iteration_ms": round(took[-1], 3), "loss": losses[-1]}), flush=True)
        if stop.agreed(step):
            break
    del ballast
    report(rank, step + 1, model, losses, took)


def report(rank, steps, model, losses, took):
    """Prints how it went, and whether all ranks have the same weights, bit by bit."""
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    first = weights.clone()
    dist.broadcast(first, src=0)
    quantiles = statistics.quantiles(took, n=20, method="inclusive") if len(took) > 1 else took * 19
    print(json.dumps({
        "done": True, "rank": rank, "steps": steps, "loss_first": losses[0], "loss_last": losses[-1],
        "weights_identical": torch.equal(first, weights),
        "iteration_ms": {"p50": round(quantiles[9], 4), "p95": round(quantiles[18], 4), "mean": round(statistics.fmean(took), 4)},
    }), flush=True)  # fmt: skip


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="steps to train; 0: until SIGINT or SIGTERM")
    parser.add_argument("--fault", choices=FAULTS, default="none", help="what ails one rank")
    parser.add_argument("--fault-rank", "--rank", type=int, default=0, help="which")
    parser.add_argument("--save-every", type=int, default=50, help="steps between checkpoints; 0: none")
    parser.add_argument("--compile", nargs="?", const="aot_eager", help="torch.compile the model, with this backend")
    parser.add_argument("--progress", action="store_true", help="a line on stdout now and then")
    args = parser.parse_args()
    args.hangs = args.fault == "hang"
    if args.fault == "compile":
        args.compile = args.compile or "aot_eager"
    return args


def main():
    args = parse_args()
    torch.set_num_threads(1)
    if os.environ.get("MASTER_ADDR") == "127.0.0.1":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if not 0 <= args.fault_rank < world:
        sys.exit(f"check --fault-rank: got {args.fault_rank}; want 0 to {world - 1}")
    if args.fault_rank != rank:
        args.fault = "none"
    with tempfile.TemporaryDirectory(prefix="train-") as folder:
        train(args, rank, world, folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
