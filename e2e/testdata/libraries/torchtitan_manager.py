"""Saves at the steps 2 and 4 with torchtitan's CheckpointManager on two ranks: torchtitan_manager.py FOLDER SCENARIO..."""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torchtitan.components.checkpointer.dcp import CheckpointManager

import ranks


class States:
    """A part of a job, as far as a save sees it."""

    def __init__(self, make):
        self.state_dict = make

    def load_state_dict(self, state):
        raise NotImplementedError


def train(folder, options):
    rank = dist.get_rank()
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Linear(16, 16))
    fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    optimizer = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    step = 0
    manager = CheckpointManager(
        CheckpointManager.Config(enable=True, folder=folder, interval=2, **options),
        model_parts=[model],
        optimizers=States(lambda: get_optimizer_state_dict(model, optimizer)),
        lr_schedulers=States(lambda: {"last_epoch": schedule.last_epoch}),
        dataloader=States(lambda: {f"dp_rank_{rank}": bytes([step]) * 16}),
        states={"train_state": States(lambda: {"step": torch.tensor(step, dtype=torch.int32)})},
        sd_adapter=None,
    )
    for step in range(1, 5):
        model(torch.ones(2, 16)).sum().backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        manager.save(step, last_step=step == 4)
    manager.maybe_wait_for_saving()
    manager.close()


scenarios = {
    "whole": {"last_save_model_only": False},
    "weights_alone_last": {"last_save_model_only": True},  # the default
    "async": {"last_save_model_only": False, "async_mode": "async"},
}


def work():
    dist.init_process_group("gloo")
    for name in sys.argv[2:]:
        train(os.path.join(sys.argv[1], name), scenarios[name])
    dist.destroy_process_group()


ranks.run(2, work)
