"""Saves twice with Lightning's ModelCheckpoint: lightning_fit.py FOLDER"""

import sys

import lightning
import torch
from torch.utils.data import DataLoader


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def training_step(self, batch, index):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


save = lightning.pytorch.callbacks.ModelCheckpoint(sys.argv[1], every_n_train_steps=2, save_last=True, save_top_k=-1)
trainer = lightning.Trainer(max_steps=4, callbacks=[save], accelerator="cpu", logger=False, enable_progress_bar=False)
trainer.fit(Model(), DataLoader(torch.ones(64, 4), batch_size=4))
