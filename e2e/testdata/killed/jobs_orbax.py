"""Saves with Orbax's CheckpointManager, which keeps the newest two."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"

import orbax.checkpoint as ocp

import contents


class Manager:
    world, epochs, args, root = 1, [1, 2, 3, 4], [], "out"

    def run(self, rank, epochs, report):
        import jax.numpy as jnp

        with ocp.CheckpointManager(os.path.abspath("out"), options=self.options()) as manager:
            for step in epochs:
                arrays = {f"w{i}": jnp.full((64, 64), float(step + i)) for i in range(8)}
                report.begin(step)
                manager.save(step, args=ocp.args.Composite(state=ocp.args.StandardSave(arrays), extra=ocp.args.JsonSave({"step": step})))
                manager.wait_until_finished()
                report.done(step)

    def options(self):
        return ocp.CheckpointManagerOptions(max_to_keep=2)

    def content(self, root, epoch):
        """Names of files are made up for each save: it is loaded, in a process of its own, and compared."""
        return contents.forked(lambda: load(os.path.join(root, "out"), epoch))


def load(folder, epoch):
    import numpy

    with ocp.CheckpointManager(folder) as manager:
        of = manager.restore(epoch, args=ocp.args.Composite(state=ocp.args.StandardRestore(), extra=ocp.args.JsonRestore()))
    arrays = {k: numpy.asarray(v).tolist() for k, v in of["state"].items()}
    return {"state": contents.value(arrays), "extra": contents.value(of["extra"])}


jobs = {"manager": Manager}
