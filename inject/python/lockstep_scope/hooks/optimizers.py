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
    """The outermost step() of a thread that is under way."""

    optimizer: Any = None
    frame: Any = None  # that called the hook
    nested = 0


def _under_way(frame: Any) -> bool:
    """Says whether a frame still runs on this thread; one that raised does not."""
    at = sys._getframe(1)
    while at is not None:
        if at is frame:
            return True
        at = at.f_back  # type: ignore[assignment]
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
            if call.optimizer is not None and _under_way(call.frame):
                call.nested += call.optimizer is optimizer
                return
            steps.first()
            call.optimizer, call.frame, call.nested = optimizer, sys._getframe(1), 0
            span.__enter__()

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            if is_compiling() or call.optimizer is not optimizer:
                return
            if call.nested > 0:
                call.nested -= 1
                return
            call.optimizer = call.frame = None
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
