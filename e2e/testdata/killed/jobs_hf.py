"""Saves with Hugging Face's Trainer, which keeps the newest two."""

import os
import random

import numpy
import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainerCallback, TrainingArguments

import contents


class Data(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return {"input_ids": torch.arange(8), "labels": torch.arange(8)}


class Tell(TrainerCallback):
    """Makes what is saved a matter of the step alone, and tells of the save."""

    def __init__(self, report):
        self._report = report

    def on_step_end(self, args, state, control, model=None, optimizer=None, **_):
        with torch.no_grad():
            for p in model.parameters():
                p.fill_(float(state.global_step))
        for of in getattr(optimizer, "optimizer", optimizer).state.values():
            of["exp_avg"].fill_(state.global_step)
            of["exp_avg_sq"].fill_(state.global_step)
        for seed in (torch.manual_seed, random.seed, numpy.random.seed):
            seed(1000 * state.global_step + int(os.environ["RANK"]))
        self._report.begin(state.global_step)

    def on_save(self, args, state, control, **_):
        self._report.done(state.global_step)


class Alone:
    """One process."""

    world, epochs, args, root = 1, [1, 2, 3, 4], [], "out"

    def run(self, rank, epochs, report):
        if self.world == 1:
            for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
                os.environ.pop(name)
            os.environ["RANK"] = "0"
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4
        )
        arguments = TrainingArguments(
            "out", max_steps=epochs[-1], save_steps=1, save_total_limit=2, per_device_train_batch_size=4, use_cpu=True,
            report_to=[], disable_tqdm=True, logging_strategy="no", lr_scheduler_type="constant", **({"ddp_backend": "gloo"} if self.world > 1 else {}),
        )
        Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=Data(), callbacks=[Tell(report)]).train()
        if self.world > 1:
            torch.distributed.destroy_process_group()

    def content(self, root, epoch):
        return contents.files(os.path.join(root, "out"), f"checkpoint-{epoch}", canonical, lambda name: name.endswith((".md", ".jinja")))


class Two(Alone):
    """Two processes; nothing in a save says how many there were."""

    world, args = 2, ["--world-size", "2"]


def canonical(name, path):
    """How many steps there are to be differs between a job and one that is cut short."""
    if name.endswith("training_args.bin"):
        return str(os.path.getsize(path) > 0 and bool(torch.load(path, weights_only=False)))
    if name.endswith("trainer_state.json"):
        import json

        with open(path) as f:
            of = json.load(f)
        return str((of["global_step"], of["save_steps"]))
    return None


jobs = {"one": Alone, "two": Two}
