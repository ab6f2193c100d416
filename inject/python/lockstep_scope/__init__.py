# SPDX-License-Identifier: Apache-2.0

"""Steps and host phases of a training job, for Lockstep.

Everything here does nothing, at next to no cost, where the Lockstep library
is not to be had; :func:`status` says why. The interface beneath is
``inject/lockstep.h``.
"""

from .fingerprints import fingerprint
from .hooks import install, uninstall
from .resume import resumed, rng_digest
from .scopes import disable, enable, scope
from .steps import every, link, step
from .summary import status

__version__ = "0.1.0"
__all__ = [
    "disable",
    "enable",
    "every",
    "fingerprint",
    "install",
    "link",
    "resumed",
    "rng_digest",
    "scope",
    "status",
    "step",
    "uninstall",
]
