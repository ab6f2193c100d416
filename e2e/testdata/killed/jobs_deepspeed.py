"""Saves with DeepSpeed's engine."""

import os
import shutil

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch

import contents


class Tags:
    """A tag for each save, of which the newest two are kept."""

    world, epochs, args, root = 2, [1, 2, 3, 4], [], "out"

    def __init__(self, stage):
        self.stage = stage

    def run(self, rank, epochs, report):
        deepspeed.init_distributed(dist_backend="gloo")
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8)))
        config = {
            "train_micro_batch_size_per_gpu": 1,
            "zero_optimization": {"stage": self.stage},
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
            "bf16": {"enabled": True},
        }
        engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters()), config=config)
        for i, epoch in enumerate(epochs):
            engine.backward(engine(torch.full((1, 64), float(epoch), dtype=torch.bfloat16)).sum())
            engine.step()
            report.begin(epoch)
            engine.save_checkpoint("out", **self.tag())
            deepspeed.comm.barrier()
            if rank == 0 and i >= 2:
                self.retire(epochs[i - 2])
            deepspeed.comm.barrier()
            report.done(epoch)
        torch.distributed.destroy_process_group()

    def tag(self):
        return {}

    def retire(self, epoch):
        shutil.rmtree(f"out/global_step{epoch}")

    def content(self, root, epoch):
        return contents.files(f"{root}/out", f"global_step{epoch}", canonical)


class OneTag(Tags):
    """All saves under one tag, each over the one before."""

    def tag(self):
        return {"tag": "newest"}

    def retire(self, epoch):
        pass

    def content(self, root, epoch):
        return contents.files(f"{root}/out", "newest", canonical)


def canonical(name, path):
    """Objects in these files have ids, by which they are written in another order."""
    if not name.endswith(".pt"):
        return None
    of = torch.load(path, weights_only=False, map_location="cpu")
    keep = ("module", "global_steps", "global_samples", "optimizer_state_dict", "param_shapes", "dp_world_size")
    return contents.value({k: of[k] for k in keep if k in of})


jobs = {f"zero{stage}": lambda stage=stage: Tags(stage) for stage in (1, 2, 3)}
jobs["one_tag"] = lambda: OneTag(1)
