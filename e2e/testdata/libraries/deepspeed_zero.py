"""Saves at the steps 2 and 4 with DeepSpeed's ZeRO on two ranks: deepspeed_zero.py FOLDER SCENARIO..."""

import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed
import torch

import ranks


def train(folder, stage, precision, save):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 2))
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        **precision,
    }
    kind = torch.float16 if "fp16" in precision else torch.bfloat16
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.AdamW(model.parameters()), config=config)
    for step in range(1, 5):
        engine.backward(engine(torch.ones(1, 8, dtype=kind)).sum())
        engine.step()
        if step % 2 == 0:
            save(engine, folder, step)
    assert (engine.skipped_steps > 0) == ("fp16" in precision), engine.skipped_steps
    engine.destroy()


def whole(engine, folder, step):
    engine.save_checkpoint(folder)


def weights(engine, folder, step):
    engine.save_16bit_model(f"{folder}/global_step{step}")


bf16 = {"bf16": {"enabled": True}}
# A loss scale this high overflows for some steps, which the optimizer skips.
fp16 = {"fp16": {"enabled": True, "initial_scale_power": 17, "hysteresis": 1}}
scenarios = {
    "zero1": (1, bf16, whole),
    "zero2": (2, bf16, whole),
    "zero3": (3, bf16, whole),
    "skipped": (1, fp16, whole),
    "skipped_zero3": (3, fp16, whole),
    "weights_alone": (1, bf16, weights),
}


def work():
    deepspeed.ops.__compatible_ops__.clear()  # no op is compiled
    deepspeed.init_distributed(dist_backend="gloo")
    # It asks for instructions that few processors have; arithmetic without them is slow, not wrong.
    deepspeed.get_accelerator().is_fp16_supported = lambda: True
    for name in sys.argv[2:]:
        train(os.path.join(sys.argv[1], name), *scenarios[name])
    torch.distributed.destroy_process_group()


ranks.run(2, work)
