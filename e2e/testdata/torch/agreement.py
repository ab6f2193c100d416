#!/usr/bin/env python3
"""Trains under torch.profiler, and prints what the profiler itself recorded.

Run by e2e/torch_test.go through `python -m lockstep_scope`, one process per rank.
Every kind of work takes some tens of milliseconds, so that one percent of it is
more than what lies between the places at which the two look, which is 0.2 ms for a
step of the optimizer. Both records are cut to what begins within "profiled".

Prints {"kind": {"count": n, "ns": sum}}.
"""

import gc
import json
import os
import re
import time

import torch
import torch.distributed as dist
from torch._C._profiler import _ExperimentalConfig
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.data import DataLoader, Dataset

import lockstep_scope

STEPS = 6
GARBAGE = 150_000

# How the profiler calls what the hooks record. A function of Python is an event of
# the name, file and line of its code.
SOURCES = {
    "forward": ("python_function", re.compile(r"nn\.Module: DistributedDataParallel_\d+$")),
    "backward": ("python_function", re.compile(r"torch/autograd/__init__\.py\(\d+\): backward$")),
    "optimizer": ("user_annotation", re.compile(r"Optimizer\.step#")),
    "data_loading": ("user_annotation", re.compile(r"enumerate\(DataLoader\)#")),
    "garbage_collection": (None, re.compile(r"Python GC$")),
    "compile": ("python_function", re.compile(r"torch/_dynamo/convert_frame\.py\(\d+\): compile_inner$")),
}


class Samples(Dataset):
    def __len__(self):
        return STEPS + 3

    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.full((128, 512), float(index % 3))


def step_once(model, optimizer, batches):
    model(next(batches)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    gc.collect()
    torch._dynamo.reset()
    torch.compile(lambda x: (x * 2 + 1).relu().sum(), backend="eager")(torch.ones(3))


def recorded(path):
    with open(path, encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    window = next(e for e in events if e["name"] == "profiled" and e["cat"] == "user_annotation")
    first, last = window["ts"], window["ts"] + window["dur"]
    result = {}
    for kind, (category, name) in SOURCES.items():
        mine = [e for e in events if category in (None, e["cat"]) and name.search(e["name"]) and first <= e["ts"] < last]
        result[kind] = {"count": len(mine), "ns": round(sum(e["dur"] for e in mine) * 1000)}
    return result


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    layers = [torch.nn.Linear(512, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)]
    model = DistributedDataParallel(torch.nn.Sequential(*layers))
    optimizer = torch.optim.Adam(model.parameters(), foreach=False, amsgrad=True)
    batches = iter(DataLoader(Samples(), batch_size=None))
    garbage = [[] for _ in range(GARBAGE)]
    gc.disable()  # collections are those of the program, so that none is in between
    for _ in range(2):
        step_once(model, optimizer, batches)
    with profile(
        activities=[ProfilerActivity.CPU], with_stack=True,
        experimental_config=_ExperimentalConfig(record_python_gc_info=True),
    ) as recorder:  # fmt: skip
        with record_function("profiled"), lockstep_scope.scope("profiled"):
            for _ in range(STEPS):
                step_once(model, optimizer, batches)
    del garbage
    path = os.path.join(os.environ["TRACES"], f"rank{dist.get_rank()}.json")
    recorder.export_chrome_trace(path)
    print(json.dumps(recorded(path)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
