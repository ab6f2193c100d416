# SPDX-License-Identifier: Apache-2.0

"""What the launcher says of this process. Sources: the tables of docs/format/ring.md."""

from __future__ import annotations

import hashlib
import os
from typing import Optional, Sequence

_RANK = ("LOCKSTEP_RANK", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_JOB = ("LOCKSTEP_JOB_ID", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID")
# One launch of one job: its processes agree on all of these, and those of another do not.
_LAUNCH = _JOB + (
    "LOCKSTEP_RUN_ID", "SLURM_STEP_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT",
    "MASTER_ADDR", "MASTER_PORT",
)  # fmt: skip


def rank() -> Optional[int]:
    """Returns the process's rank in its job, or None where nothing says it."""
    for name in _RANK:
        value = os.environ.get(name, "")
        if value.isascii() and value.isdigit() and len(value) < 19:
            return int(value)
    return None


def job() -> Optional[str]:
    """Returns the job's id, or None where nothing says it."""
    return next((os.environ[name] for name in _JOB if os.environ.get(name)), None)


def group_hash(name: str, ranks: Sequence[int]) -> int:
    """Returns 64 bits that the members of a process group agree on; never 0."""
    launch = [f"{variable}={os.environ.get(variable, '')}" for variable in _LAUNCH]
    text = "\n".join([*launch, name, ",".join(map(str, ranks))])
    digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1
