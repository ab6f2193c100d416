"""Saves at the steps 2 and 4 with Lightning's ModelCheckpoint: lightning_fit.py FOLDER SCENARIO..."""

import os
import sys

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader


class Model(lightning.LightningModule):
    """Its schedule counts epochs, as is Lightning's default."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def training_step(self, batch, index):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters())
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


class Adversaries(Model):
    """Steps two optimizers by hand, each of which counts as a step."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, index):
        for optimizer in self.optimizers():
            optimizer.zero_grad()
            self.manual_backward(self.layer(batch).sum())
            optimizer.step()

    def configure_optimizers(self):
        return [torch.optim.SGD(self.parameters(), 0.1, momentum=0.9), torch.optim.AdamW(self.parameters())]


def fit(folder, *saves, model=Model, steps=4, resume=None):
    callbacks = [ModelCheckpoint(folder, **{"every_n_train_steps": 2, "save_top_k": -1, **save}) for save in saves]
    trainer = lightning.Trainer(
        max_steps=steps, callbacks=callbacks, accelerator="cpu", logger=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(model(), DataLoader(torch.ones(8, 4), batch_size=4), ckpt_path=resume)


def changed(folder):
    """A job that goes on with a configuration that saves the weights alone."""
    fit(folder, {}, steps=2)
    fit(folder, {"save_weights_only": True, "save_last": True}, resume=f"{folder}/epoch=0-step=2.ckpt")


scenarios = {
    "whole": lambda folder: fit(folder, {"save_last": True}),
    "no_last": lambda folder: fit(folder, {}),
    "link": lambda folder: fit(folder, {"save_last": "link"}),
    "weights_alone": lambda folder: fit(folder, {"save_weights_only": True, "save_last": True}),
    "weights_alone_last": changed,
    "adversaries": lambda folder: fit(folder, {"save_last": True}, model=Adversaries, steps=8),
}
for name in sys.argv[2:]:
    scenarios[name](os.path.join(sys.argv[1], name))
