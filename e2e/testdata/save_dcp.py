"""Saves a model, its optimizer and its step with PyTorch DCP, on several processes.

python save_dcp.py RANKS FOLDER STEP [local]

With "local" each rank commits for itself (use_collectives=False).
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor


def work(rank, ranks, folder, step, local, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=ranks)
    mesh = init_device_mesh("cpu", (ranks,))

    def sharded(n):
        return distribute_tensor(torch.full((ranks * 64, 64), float(n)), mesh, [Shard(0)])

    state = {
        "model": {f"layer{i}.weight": sharded(step + i) for i in range(64)},
        "optimizer": {"state": {"layer0.weight": {"exp_avg": sharded(step), "step": torch.tensor(float(step))}}},
        "lr_scheduler": {"last_epoch": step},
        "dataloader": {f"dp_rank_{rank}": bytes(16)},
        "rng": torch.get_rng_state(),
        "step": step,
    }
    dcp.save(state, checkpoint_id=folder, **({"use_collectives": False} if local else {}))
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks, folder, step = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    store = folder.rstrip("/") + f".store.{os.getpid()}"
    mp.spawn(work, (ranks, folder, step, sys.argv[4:] == ["local"], store), ranks)
