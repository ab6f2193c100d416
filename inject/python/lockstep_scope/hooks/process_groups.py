# SPDX-License-Identifier: Apache-2.0

"""torch.distributed: what makes process groups is a scope "process_group"."""

from __future__ import annotations

import threading

from ..scopes import scope
from .patch import Hook, compiling, outermost

_MAKERS = ("init_process_group", "new_group", "split_group")


class ProcessGroups(Hook):
    """Records "process_group", phase init."""

    name = "process_group"
    needs = "torch"

    def install(self) -> None:
        import torch.distributed

        if not torch.distributed.is_available():
            raise RuntimeError("torch.distributed is not available")
        wrap = outermost(self, scope("process_group", "init"), threading.local(), compiling())
        for name in _MAKERS:
            self.replace(f"torch.distributed.distributed_c10d.{name} torch.distributed.{name}", wrap)
