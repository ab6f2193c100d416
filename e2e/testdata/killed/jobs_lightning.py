"""Saves with Lightning's ModelCheckpoint: a file for each save, the newest under a second name."""

import lightning
import torch
from torch.utils.data import DataLoader

import contents


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(8)))

    def training_step(self, batch, index):
        return self.layers(batch).sum()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


class Tell:
    """What a callback that saves has beside: what it saves is a matter of the step alone, and it tells."""

    report = None

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        step = trainer.global_step
        with torch.no_grad():
            for p in module.parameters():
                p.fill_(float(step))
        self.report.begin(step)
        super().on_train_batch_end(trainer, module, outputs, batch, index)
        self.report.done(step)


class Save(Tell, lightning.pytorch.callbacks.ModelCheckpoint):
    pass


class Newest:
    """last.ckpt is written anew with each save, over itself."""

    world, epochs, args, root = 1, [1, 2, 3, 4], [], "out"

    def run(self, rank, epochs, report):
        torch.manual_seed(0)
        save = self.callback(dirpath="out", filename="{step}", every_n_train_steps=1, save_last=True, save_top_k=2, monitor="step", mode="max")
        save.report = report
        trainer = lightning.Trainer(
            max_steps=epochs[-1], callbacks=[save], accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False
        )
        trainer.fit(Model(), DataLoader(torch.ones(64, 128), batch_size=4))

    def callback(self, **options):
        return Save(**options)

    def content(self, root, epoch):
        """A save is whole where a file has it: its own, or the one that is called last."""
        for name in (f"step={epoch}.ckpt", "last.ckpt"):
            try:
                of = torch.load(f"{root}/out/{name}", weights_only=False, map_location="cpu")
            except Exception:  # whatever torch raises of what is cut off
                continue
            if of["global_step"] == epoch:
                return {"ckpt": contents.value([of["state_dict"], of["global_step"], [o["state"] for o in of["optimizer_states"]]])}
        return {}


jobs = {"last": Newest}
