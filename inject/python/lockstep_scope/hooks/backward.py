# SPDX-License-Identifier: Apache-2.0

"""torch.autograd: the outermost backward or grad of a thread is a scope "backward"."""

from __future__ import annotations

import threading

from ..scopes import scope
from .patch import Hook, compiling, outermost


class Backward(Hook):
    """Records "backward". Tensor.backward calls torch.autograd.backward."""

    name = "backward"
    needs = "torch"

    def install(self) -> None:
        wrap = outermost(self, scope("backward"), threading.local(), compiling())
        self.replace("torch.autograd.backward", wrap)
        self.replace("torch.autograd.grad", wrap)
