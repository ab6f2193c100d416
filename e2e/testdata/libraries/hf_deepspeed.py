"""Saves at the steps 2 and 4 with the Trainer on DeepSpeed, in half precision: hf_deepspeed.py FOLDER SCENARIO..."""

import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed

import hf_trainer
import ranks


def train(folder, **options):
    deepspeed.ops.__compatible_ops__.clear()  # no op is compiled
    deepspeed.get_accelerator().is_fp16_supported = lambda: True
    config = {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
        # A loss scale this high overflows for some steps, which the optimizer skips.
        "fp16": {"enabled": True, "initial_scale_power": 19, "hysteresis": 1},
    }
    trainer = hf_trainer.train(folder, use_cpu=False, fp16=True, deepspeed=config, **options)
    assert 0 < trainer.model_wrapped.skipped_steps < 4, trainer.model_wrapped.skipped_steps


scenarios = {"skipped": {}, "weights_alone": {"save_only_model": True}}
for name in sys.argv[2:]:
    # On two ranks the Trainer takes a DeepSpeed without GPUs for one of one rank.
    ranks.run(1, lambda: train(os.path.join(sys.argv[1], name), **scenarios[name]))
