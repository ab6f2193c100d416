"""Saves with NeMo's callback for Lightning: a marker lies beside each save that is not finished."""

# What logs for NeMo was written for another version of Lightning, and refuses it for the types of its
# methods.
import overrides

overrides.override = overrides.overrides = lambda method=None, **_: method or (lambda m: m)
overrides.EnforceOverrides = object

from nemo.utils.callbacks.nemo_model_checkpoint import NeMoModelCheckpoint  # noqa: E402

import jobs_lightning  # noqa: E402


class Save(jobs_lightning.Tell, NeMoModelCheckpoint):
    pass


class Marked(jobs_lightning.Newest):
    def callback(self, **options):
        return Save(save_nemo_on_train_end=False, **options)


jobs = {"marked": Marked}
