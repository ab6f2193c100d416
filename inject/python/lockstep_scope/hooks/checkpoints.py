# SPDX-License-Identifier: Apache-2.0

"""torch.save, torch.load and torch.distributed.checkpoint: scopes "checkpoint_save" and "checkpoint_load"."""

from __future__ import annotations

import threading

from .. import imports
from ..scopes import scope
from .patch import Hook, compiling, outermost


class Checkpoints(Hook):
    """Records checkpoints, phase checkpoint: the outermost call of a thread.

    Of async_save it is the call itself; what is written afterwards holds nobody up.
    """

    name = "checkpoint"
    needs = "torch"

    def install(self) -> None:
        local, is_compiling = threading.local(), compiling()
        self._save = outermost(self, scope("checkpoint_save", "checkpoint"), local, is_compiling)
        self._load = outermost(self, scope("checkpoint_load", "checkpoint"), local, is_compiling)
        self.replace("torch.serialization.save torch.save", self._save)
        self.replace("torch.serialization.load torch.load", self._load)
        imports.when_imported("torch.distributed.checkpoint", self._distributed)

    def _distributed(self) -> None:
        if not self.active:
            return
        package = "torch.distributed.checkpoint"
        for name in ("save", "async_save"):
            self.replace(f"{package}.state_dict_saver.{name} {package}.{name}", self._save)
        self.replace(f"{package}.state_dict_loader.load {package}.load", self._load)
