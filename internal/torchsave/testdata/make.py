"""Writes the files beside it, with torch.save of PyTorch 2.15: python make.py"""

import argparse
import os

import torch

os.chdir(os.path.dirname(os.path.abspath(__file__)))
torch.manual_seed(1)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
torch.save(
    {
        "args": argparse.Namespace(iteration=1000, tensor_model_parallel_size=2),
        "iteration": 1000,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    },
    "megatron.pt",
)
torch.save({"iteration": 1000}, "legacy.pt", _use_new_zipfile_serialization=False)
torch.serialization.set_crc32_options(False)
torch.save({"iteration": 1000, "w": torch.arange(8)}, "nocrc.pt")
