"""Trains until one rank stops taking part. Each rank serves PyTorch's debug handlers on
its own of PORTS; with DUMP_AFTER, it writes its Flight Recorder's dump so many seconds
after it was ready, as PyTorch does when a collective times out."""

import os
import threading
import time

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace_file, _WorkerServer

rank = int(os.environ["RANK"])
server = _WorkerServer("127.0.0.1", int(os.environ["PORTS"].split(",")[rank]))
dist.init_process_group("gloo")


def dump_later(seconds):
    time.sleep(seconds)
    _dump_fr_trace_file(rank, True, True)


if "DUMP_AFTER" in os.environ:
    threading.Thread(target=dump_later, args=(float(os.environ["DUMP_AFTER"]),), daemon=True).start()
gradients = torch.ones(8)
for step in range(20):
    dist.all_reduce(gradients)
print("the last step that all ranks take is over", flush=True)
if rank == int(os.environ["STUCK"]):
    time.sleep(3600)
dist.all_reduce(gradients)
