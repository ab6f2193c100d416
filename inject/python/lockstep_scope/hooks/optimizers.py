# SPDX-License-Identifier: Apache-2.0

"""torch.optim: the outermost step() of a thread is a scope "optimizer", and ends a step of the job."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any, Optional

from .. import steps
from ..scopes import scope
from .patch import Hook, compiling


class _Call(threading.local):
    """The outermost step() of a thread that is under way; what raised is not kept."""

    optimizer: Any = None  # a weak reference
    frame = 0  # the id of that which called the hook
    code: Any = None  # of that frame
    nested = 0


def _under_way(call: _Call, caller: Any) -> bool:
    """Says whether the call still runs on this thread; one that raised does not.

    Another frame may have got its id. One of the same code has called the hook
    itself, so it is the one that is known, unless it is just calling.
    """
    at = caller.f_back
    while at is not None:
        if id(at) == call.frame and at.f_code is call.code:
            return True
        at = at.f_back
    return False


class Optimizers(Hook):
    """Records "optimizer"."""

    name = "optimizer"
    needs = "torch"

    def install(self) -> None:
        from torch.optim import optimizer as torch_optimizer

        call, span, is_compiling = _Call(), scope("optimizer"), compiling()

        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            if is_compiling():
                return
            caller = sys._getframe(1)
            if call.optimizer is not None and _under_way(call, caller):
                call.nested += call.optimizer() is optimizer
                return
            steps.first()
            call.optimizer, call.nested = weakref.ref(optimizer), 0
            call.frame, call.code = id(caller), caller.f_code
            span.__enter__()

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            if is_compiling() or call.optimizer is None or call.optimizer() is not optimizer:
                return
            if call.nested > 0:
                call.nested -= 1
                return
            call.optimizer = call.code = None
            span.__exit__(None, None, None)

        self.undo(torch_optimizer.register_optimizer_step_pre_hook(before).remove)
        self.undo(torch_optimizer.register_optimizer_step_post_hook(after).remove)


class Steps(Hook):
    """Begins a step of the job after each step() of the first optimizer seen.

    It is told after the hook above, so that the optimizer's scope belongs to the
    step that it ends.
    """

    name = "steps"
    needs = "torch"

    def install(self) -> None:
        from torch.optim import optimizer as torch_optimizer

        is_compiling = compiling()
        first: Optional["weakref.ref[Any]"] = None

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            nonlocal first
            if is_compiling():
                return
            if first is None or first() is None:
                first = weakref.ref(optimizer)
            if first() is optimizer:
                steps.next()

        self.undo(torch_optimizer.register_optimizer_step_post_hook(after).remove)
