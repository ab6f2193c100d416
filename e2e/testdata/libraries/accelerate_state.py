"""Saves twice with accelerate's save_state: accelerate_state.py FOLDER SCENARIO..."""

import os
import sys

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import ProjectConfiguration
from torch.utils.data import DataLoader

import ranks


class Progress:
    step = 0

    def state_dict(self):
        return {"step": self.step}

    def load_state_dict(self, state):
        self.step = state["step"]


def train(folder, save):
    AcceleratorState._reset_state(reset_partial_state=True)  # of the scenario before, which ranks have inherited
    naming = ProjectConfiguration(folder, automatic_checkpoint_naming=save is state)
    accelerator = Accelerator(cpu=True, project_config=naming)
    layer = torch.nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(layer.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    layer, optimizer, scheduler, loader = accelerator.prepare(layer, optimizer, scheduler, DataLoader(torch.ones(64, 4), batch_size=4, shuffle=True))
    progress = Progress()
    accelerator.register_for_checkpointing(progress)
    for batch in loader:
        accelerator.backward(layer(batch).sum())
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        progress.step += 1
        if progress.step in (2, 4):
            save(accelerator, layer, folder, progress.step)
    accelerator.end_training()


def state(accelerator, layer, folder, step):
    accelerator.save_state()


def numbered(accelerator, layer, folder, step):
    """As with automatic naming, in which two ranks race for the new folder."""
    accelerator.save_state(f"{folder}/checkpoints/checkpoint_{step // 2 - 1}")


def named(accelerator, layer, folder, step):
    """As the scripts of diffusers name their folders."""
    accelerator.save_state(f"{folder}/checkpoint-{step}")


def weights(accelerator, layer, folder, step):
    accelerator.save_model(layer, f"{folder}/checkpoint-{step}")


scenarios = {
    "automatic": lambda folder: train(folder, state),
    "two_ranks": lambda folder: ranks.run(2, train, folder, numbered),
    "named": lambda folder: train(folder, named),
    "weights_alone": lambda folder: train(folder, weights),
}
for name in sys.argv[2:]:
    scenarios[name](os.path.join(sys.argv[1], name))
