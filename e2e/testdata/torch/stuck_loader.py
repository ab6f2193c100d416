"""Trains until the data of one rank does not come any more. Each rank writes its Flight
Recorder's dump once the file ASK is there, as PyTorch does when a collective times out."""

import os
import threading
import time

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace_file
from torch.utils.data import DataLoader, Dataset

LAST = 400  # steps that all take: enough gaps for a limit of the job's own

dist.init_process_group("gloo")
rank = dist.get_rank()
everybody = dist.new_group(group_desc="gradients")


class Samples(Dataset):
    def __len__(self):
        return 2 * LAST

    def __getitem__(self, index):
        if index == LAST and rank == int(os.environ["STUCK"]):
            threading.Event().wait()  # a store that does not answer
        return torch.ones(8)


def dump_when_asked():
    while not os.path.exists(os.environ["ASK"]):
        time.sleep(0.1)
    _dump_fr_trace_file(rank, True, True)


threading.Thread(target=dump_when_asked, daemon=True).start()
for batch in DataLoader(Samples()):
    dist.all_reduce(batch, group=everybody)
