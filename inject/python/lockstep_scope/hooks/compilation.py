# SPDX-License-Identifier: Apache-2.0

"""torch.compile: what a thread compiles is a scope "compile"."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator

from ..scopes import scope
from .patch import Hook


class Compilation(Hook):
    """Records "compile" around what torch._dynamo's own callbacks tell of.

    The callbacks themselves are forgotten by torch._dynamo.reset(), and may begin
    on one thread and end on another; so what calls them is wrapped, where there is one.
    """

    name = "compile"
    needs = "torch._dynamo"

    def install(self) -> None:
        from torch._dynamo import callback

        span, local = scope("compile", "compile"), threading.local()
        handler = callback.callback_handler
        if hasattr(handler, "install_callbacks"):
            self.replace("torch._dynamo.callback.CompilationCallbackHandler.install_callbacks", _around(self, span, local))
            return

        def started(*_: Any) -> None:
            local.begun = True
            span.__enter__()

        def ended(*_: Any) -> None:
            if getattr(local, "begun", False):
                local.begun = False
                span.__exit__(None, None, None)

        handler.register_start_callback(started)
        self.undo(lambda: handler.remove_start_callback(started))
        handler.register_end_callback(ended)
        self.undo(lambda: handler.remove_end_callback(ended))


def _around(hook: Hook, span: Any, local: Any) -> Callable[..., Any]:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @contextlib.contextmanager
        def install_callbacks(*args: Any, **kwargs: Any) -> Iterator[Any]:
            if not hook.active or getattr(local, "inside", False):
                with original(*args, **kwargs) as value:
                    yield value
                return
            local.inside = True
            try:
                with span, original(*args, **kwargs) as value:
                    yield value
            finally:
                local.inside = False

        return install_callbacks

    return wrap
