"""Saves twice with DeepSpeed's ZeRO: deepspeed_zero.py STAGE FOLDER"""

import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch

deepspeed.init_distributed(dist_backend="gloo")
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
config = {
    "train_micro_batch_size_per_gpu": 1,
    "zero_optimization": {"stage": int(sys.argv[1])},
    "zero_allow_untested_optimizer": True,
    "zero_force_ds_cpu_optimizer": False,
    "bf16": {"enabled": True},
}
engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters()), config=config)
for step in range(1, 5):
    engine.backward(engine(torch.ones(1, 8, dtype=torch.bfloat16)).sum())
    engine.step()
    if step % 2 == 0:
        engine.save_checkpoint(sys.argv[2])
