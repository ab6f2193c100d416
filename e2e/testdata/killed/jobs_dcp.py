"""Saves with PyTorch's distributed checkpoint."""

import os
import pickle
import shutil

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import contents


class Fresh:
    """A folder for each save, of which the newest two are kept."""

    world, epochs, args, root = 2, [100, 200, 300, 400], [], "."
    collectives = True

    def path(self, epoch):
        return f"step-{epoch}"

    def run(self, rank, epochs, report):
        dist.init_process_group("gloo")
        mesh = init_device_mesh("cpu", (self.world,))

        def sharded(n):
            return distribute_tensor(torch.full((self.world * 64, 64), float(n)), mesh, [Shard(0)])

        for i, epoch in enumerate(epochs):
            state = {
                "model": {f"layer{j}.weight": sharded(epoch + j) for j in range(32)},
                "optimizer": {"state": {"layer0.weight": {"exp_avg": sharded(epoch), "step": torch.tensor(float(epoch))}}},
                "lr_scheduler": {"last_epoch": epoch},
                "dataloader": {f"dp_rank_{rank}": bytes([epoch % 251]) * 16},
                "rng": torch.full((64,), epoch % 251, dtype=torch.uint8),
                "step": epoch,
            }
            report.begin(epoch)
            dcp.save(state, checkpoint_id=self.path(epoch), **({} if self.collectives else {"use_collectives": False}))
            dist.barrier()
            if rank == 0 and i >= 2:
                self.retire(epochs[i - 2])
            dist.barrier()
            report.done(epoch)
        dist.destroy_process_group()

    def retire(self, epoch):
        shutil.rmtree(self.path(epoch))

    def content(self, root, epoch):
        return contents.files(root, self.path(epoch), canonical)


class Over(Fresh):
    """Each save over the one before, in one folder: the default of DCP."""

    root = "save"

    def path(self, epoch):
        return "save"

    def retire(self, epoch):
        pass


class Local(Over):
    """Each rank commits for itself."""

    collectives, args = False, ["--world-size", "2"]


def canonical(name, path):
    """Each save has an id of its own in its metadata."""
    if not os.path.basename(name).endswith(".metadata"):
        return None
    with open(path, "rb") as f:
        of = pickle.load(f)
    where = {repr(k): (v.relative_path, v.offset, v.length) for k, v in of.storage_data.items()}
    return contents.value({"items": sorted(map(repr, of.state_dict_metadata)), "where": where})


jobs = {"fresh": Fresh, "over": Over, "local": Local}
