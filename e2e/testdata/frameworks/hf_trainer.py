"""Saves twice with Hugging Face's Trainer: hf_trainer.py FOLDER"""

import os
import sys

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Data(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return {"input_ids": torch.arange(8), "labels": torch.arange(8)}


config = LlamaConfig(vocab_size=16, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2)
backend = {"ddp_backend": "gloo"} if "WORLD_SIZE" in os.environ else {}
arguments = TrainingArguments(sys.argv[1], max_steps=4, save_steps=2, per_device_train_batch_size=4, use_cpu=True, report_to=[], **backend)
Trainer(model=LlamaForCausalLM(config), args=arguments, train_dataset=Data()).train()
