# SPDX-License-Identifier: Apache-2.0

"""torch.utils.data: each batch that a loader is asked for is a scope "data_loading"."""

from __future__ import annotations

from typing import Any, Callable

from .. import steps
from ..scopes import scope
from .patch import Hook


class DataLoaders(Hook):
    """Records "data_loading" on the thread that asks, whoever loads."""

    name = "data"
    needs = "torch"

    def install(self) -> None:
        span = scope("data_loading")

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def __next__(iterator: Any) -> Any:
                if not self.active:
                    return original(iterator)
                steps.first()
                with span:
                    return original(iterator)

            return __next__

        self.replace("torch.utils.data.dataloader._BaseDataLoaderIter.__next__", wrap)
