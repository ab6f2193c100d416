"""Saves at the steps 2 and 4 with Hugging Face's Trainer: hf_trainer.py FOLDER SCENARIO..."""

import os
import sys

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

import ranks


class Data(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return {"input_ids": torch.arange(8), "labels": torch.arange(8)}


def model():
    return LlamaForCausalLM(LlamaConfig(vocab_size=16, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2))


def adapters():
    import peft

    wrapped = peft.get_peft_model(model(), peft.LoraConfig(r=2, target_modules=["q_proj"]))
    wrapped.add_adapter("policy", peft.LoraConfig(r=2, target_modules=["v_proj"]))
    return wrapped


def train(folder, what=None, kind=Trainer, resume=None, **options):
    options = {"max_steps": 4, "save_steps": 2, "per_device_train_batch_size": 4, "use_cpu": True, **options}
    if "WORLD_SIZE" in os.environ:
        options["ddp_backend"] = "gloo"
    arguments = TrainingArguments(folder, report_to=[], disable_tqdm=True, **options)
    trainer = kind(model=what or model(), args=arguments, train_dataset=Data(), eval_dataset=Data())
    trainer.train(resume_from_checkpoint=resume)
    return trainer


class SeveralUpdates(Trainer):
    """Steps its optimizer and its scheduler three times a step, as trainers of policies do."""

    def training_step(self, *args, **kwargs):
        loss = super().training_step(*args, **kwargs)
        for _ in range(2):
            self.optimizer.step()
            self.lr_scheduler.step()
        return loss


def changed(folder):
    """A job that goes on with a configuration that saves the model alone."""
    train(folder, max_steps=2)
    train(folder, resume=f"{folder}/checkpoint-2", save_only_model=True)


def two_ranks(folder):
    ranks.run(2, train, folder)


scenarios = {
    "whole": train,
    "weights_alone": lambda folder: train(folder, save_only_model=True),
    "weights_alone_last": changed,
    "adapters": lambda folder: train(folder, adapters()),
    "adapters_alone": lambda folder: train(folder, adapters(), save_only_model=True),
    "several_updates": lambda folder: train(folder, kind=SeveralUpdates),
    "plateau": lambda folder: train(folder, lr_scheduler_type="reduce_lr_on_plateau", metric_for_best_model="eval_loss", eval_strategy="steps", eval_steps=2),
    "two_ranks": two_ranks,
    "export": lambda folder: model().save_pretrained(folder),
    "export_sharded": lambda folder: model().save_pretrained(folder, max_shard_size="5KB"),
}
if __name__ == "__main__":
    for name in sys.argv[2:]:
        scenarios[name](os.path.join(sys.argv[1], name))
