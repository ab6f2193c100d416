# SPDX-License-Identifier: Apache-2.0

"""What a rank loaded as it resumed, told before its first step."""

from __future__ import annotations

import hashlib
import sys
from typing import Any, Callable, Optional, Tuple, Union

from .checks import integer, text
from .library import LIBRARY

_DIGEST = 16


def resumed(
    step: int,
    optimizer_step: Optional[int] = None,
    data_cursor: Union[int, str, None] = None,
    rng_digest: Union[str, bytes, None] = None,
    replica: Union[int, str, None] = None,
) -> None:
    """Says what this rank has loaded; called by all ranks after the load, before the first step.

    step: the training step that the loaded state is of, from 0. optimizer_step: updates that the
    optimizer's state has seen. Each must be the same on all ranks of the job.
    data_cursor: where this rank's data go on, in whatever unit the loader has: an integer from 0,
    or a text of 1 to 32 bytes (a digest of what is longer). rng_digest: of the states of random
    generators, 32 hexadecimal digits or 16 bytes, as :func:`rng_digest` returns them.
    replica: names the ranks that must agree on these two, as an integer from 0 or 1 to 32 bytes of
    text; without it nothing is concluded from them, since they rightly differ between ranks.

    The n-th call of a rank is compared with the n-th of the others: one that loads again within
    its life, as all others then do, calls it again. None says nothing of a value.
    Raises TypeError or ValueError where a value is not as above, and then records nothing.
    """
    step = integer("tell resume: step", step)
    optimizer_step = -1 if optimizer_step is None else integer("tell resume: optimizer_step", optimizer_step)
    cursor, name = text("tell resume: data_cursor", data_cursor), text("tell resume: replica", replica)
    LIBRARY.resumed(step, optimizer_step, cursor, _digest(rng_digest), name)


def _digest(value: Any) -> Optional[bytes]:
    if value is None:
        return None
    got = value
    if isinstance(value, str):
        try:
            value = bytes.fromhex(value)
        except ValueError:
            value = b""
    if not isinstance(value, (bytes, bytearray)):
        raise TypeError(f"tell resume: rng_digest: got {type(got).__name__}; want text or bytes")
    if len(value) != _DIGEST:
        want = f"{2 * _DIGEST} hexadecimal digits or {_DIGEST} bytes"
        raise ValueError(f"tell resume: rng_digest: got {got!r:.80}; want {want}")
    return bytes(value)


def rng_digest() -> Optional[str]:
    """Returns a digest of the states of random generators, as 32 hexadecimal digits.

    Of those of random, numpy.random (the global one), torch, and the current CUDA device, as far
    as the program has imported, and of CUDA begun to use, them: nothing is imported here. None
    where there is none of them, or one cannot be read. Two ranks agree only where both have the
    same generators in the same states; no state is changed. It takes some tenths of a millisecond,
    and waits for the device where CUDA is in use.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST)
    found = False
    for name, read in _GENERATORS:
        module = sys.modules.get(name)
        if module is None:
            continue
        try:
            state = read(module)
        except Exception:  # of another version, or half imported: a part would be taken for the whole
            return None
        if state is not None:
            digest.update(f"{name} {len(state)}\n".encode() + state)
            found = True
    return digest.hexdigest() if found else None


def _python(random: Any) -> bytes:
    return repr(random.getstate()).encode()


def _numpy(random: Any) -> bytes:
    name, keys, *rest = random.get_state()
    return repr((name, rest)).encode() + keys.tobytes()


def _torch(torch: Any) -> bytes:
    return bytes(torch.get_rng_state().tolist())  # without NumPy


def _cuda(cuda: Any) -> Optional[bytes]:
    return bytes(cuda.get_rng_state().tolist()) if cuda.is_initialized() else None


_GENERATORS: Tuple[Tuple[str, Callable[[Any], Optional[bytes]]], ...] = (
    ("random", _python),
    ("numpy.random", _numpy),
    ("torch", _torch),
    ("torch.cuda", _cuda),
)
