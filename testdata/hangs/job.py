"""What the jobs of this folder share: their process groups, and how their Flight
Recorders are dumped. A job has RANK, WORLD_SIZE and OUT, the folder of its dumps, in its
environment; run.py starts it."""

import os
import threading
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json

rank = int(os.environ["RANK"])
world = int(os.environ["WORLD_SIZE"])
out = Path(os.environ["OUT"])
gradients = torch.ones(4096)
activations = torch.ones(64, 32)


def begin():
    """Makes the groups: all ranks, neighbours in pairs, and every second rank."""
    # Longer than a run lasts: nothing here is ended by the library's own timeout.
    dist.init_process_group("gloo", init_method=f"file://{out}/store", rank=rank, world_size=world,
                            timeout=timedelta(minutes=10))
    threading.Thread(target=dump_when_asked, name="dump", daemon=True).start()
    groups = {}
    for desc, members in {
        "tensor": [[first, first + 1] for first in range(0, world, 2)],
        "data": [list(range(first, world, 2)) for first in range(2)],
    }.items():
        for ranks in members:
            group = dist.new_group(ranks, group_desc=desc)
            if rank in ranks:
                groups[desc] = group
    return groups["tensor"], groups["data"]


def step(tensor, data):
    """One step of training, as far as the others see it."""
    dist.all_reduce(activations, group=tensor)
    shards = [torch.empty_like(activations) for _ in range(tensor.size())]
    dist.all_gather(shards, activations, group=tensor)
    dist.all_reduce(gradients, group=data)
    dist.all_reduce(gradients[:1])


def say_fault():
    """Tells run.py that the fault is about to happen."""
    (out / "fault").touch()


def dump_when_asked():
    while not (out / "dump").exists():
        time.sleep(0.1)
    dump = _dump_fr_trace_json() if os.environ.get("JSON") else _dump_fr_trace(includeStackTraces=not os.environ.get("BARE"))
    part = out / f"part{rank}"
    part.write_bytes(dump)
    part.rename(out / f"rank_{rank}")


def run(main):
    """Runs a job, and stays after an error, as a rank does whose library only reports
    one: its recorder can still be asked."""
    try:
        main(*begin())
    except RuntimeError as err:
        print(f"rank {rank}: {err}", flush=True)
    time.sleep(600)
