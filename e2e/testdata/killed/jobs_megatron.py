"""Saves with Megatron-Core's dist_checkpointing, in the folders and with the tracker of Megatron-LM's training loop."""

import argparse
import os
import queue
import shutil

import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing
from megatron.core.dist_checkpointing import ShardedTensor
from megatron.core.dist_checkpointing.mapping import ShardedObject
from megatron.core.dist_checkpointing.strategies import filesystem_async

import contents
import jobs_dcp

# It asks for the device that it is on, where it means the one that holds its tensors.
torch.cuda.current_device = lambda: torch.device("cpu")
torch.cuda.synchronize = lambda *_: None


class TorchDist:
    """A folder for each save, of which the newest two are kept, and the tracker after it."""

    world, epochs, args, root = 2, [100, 200, 300, 400], [], "out"

    def path(self, epoch):
        return f"out/iter_{epoch:07d}"

    def run(self, rank, epochs, report):
        dist.init_process_group("gloo")
        # It would start a process that imports all of PyTorch anew, for a queue that is of use where another
        # process saves.
        filesystem_async._results_queue = queue.Queue()
        arguments = argparse.Namespace(world_size=self.world, tensor_model_parallel_size=1, pipeline_model_parallel_size=1, data_parallel_size=self.world)
        for i, epoch in enumerate(epochs):
            report.begin(epoch)
            if rank == 0:
                os.makedirs(self.path(epoch), exist_ok=True)
            dist.barrier()
            dist_checkpointing.save(self.state(rank, epoch, arguments), self.path(epoch))
            if rank == 0:
                with open("out/latest_checkpointed_iteration.txt", "w") as f:
                    f.write(str(epoch))
            dist.barrier()
            if rank == 0 and i >= 2:
                shutil.rmtree(self.path(epochs[i - 2]))
            dist.barrier()
            report.done(epoch)
        dist.destroy_process_group()

    def state(self, rank, epoch, arguments):
        def sharded(key, n):
            return ShardedTensor.from_rank_offsets(key, torch.full((64, 64), float(n)), (0, rank, self.world))

        return {
            "args": arguments, "checkpoint_version": 3.0, "iteration": epoch,
            "model": {f"layer{j}.weight": sharded(f"layer{j}.weight", epoch + j) for j in range(16)},
            "optimizer": {"exp_avg": sharded("optimizer.exp_avg", epoch), "param_state_sharding_type": "dp_zero_gather_scatter"},
            "opt_param_scheduler": {"num_steps": epoch},
            "rng_state": ShardedObject("rng_state", [{"torch_rng_state": torch.full((16,), epoch % 251, dtype=torch.uint8)}], (self.world,), (rank,)),
        }

    def content(self, root, epoch):
        return contents.files(root, self.path(epoch), jobs_dcp.canonical)


jobs = {"torch_dist": TorchDist}
