# SPDX-License-Identifier: Apache-2.0

"""OpenTelemetry: the span that is current as a step begins is linked to it."""

from __future__ import annotations

from typing import Any, Dict

from .. import identity, steps
from .patch import Hook


class Spans(Hook):
    """Links spans to steps, and says in a span that records which step and rank it was."""

    name = "spans"

    def install(self) -> None:
        known: Dict[str, Any] = {"lockstep.rank": identity.rank(), "lockstep.job.id": identity.job()}
        attributes = {name: value for name, value in known.items() if value is not None}

        def begun(step: int) -> None:
            try:
                span = steps.current_span()
                if span is None:
                    return
                steps.link(span.get_span_context())
                if span.is_recording():
                    span.set_attributes({"lockstep.step": step, **attributes})
            except Exception:  # of a span that is not as the API says: the job goes on
                return

        steps.listen(begun)
        self.undo(lambda: steps.unlisten(begun))
