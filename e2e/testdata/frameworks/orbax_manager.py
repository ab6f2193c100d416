"""Saves twice with Orbax's CheckpointManager: orbax_manager.py FOLDER"""

import sys

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp

with ocp.CheckpointManager(sys.argv[1], options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
    for step in (2, 4):
        arrays = {"w": jax.random.normal(jax.random.PRNGKey(step), (64, 64)), "b": jnp.ones(3)}
        manager.save(step, args=ocp.args.Composite(state=ocp.args.StandardSave(arrays), extra=ocp.args.JsonSave({"step": step})))
    manager.wait_until_finished()
