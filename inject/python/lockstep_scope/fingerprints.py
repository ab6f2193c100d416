# SPDX-License-Identifier: Apache-2.0

"""Hashes of parameters, on which the replicas of a model agree bit by bit."""

from __future__ import annotations

import hashlib
import sys
from typing import Any, Dict, Iterable, List, Optional, Tuple

from .checks import integer, text
from .library import LIBRARY

_CHUNK = 1 << 20  # elements at once: 24 MiB of the device's memory for as long as it takes
_ODD = -0x61C8864680B583EB  # the golden ratio's 64 bits, signed
_MASK = 2**64 - 1
_REPLICAS = range(1, 2**32)


def fingerprint(
    parameters: Iterable[Any],
    step: int,
    every: int = 100,
    group: Any = None,
    replicas: Optional[int] = None,
    elements: int = 1 << 22,
) -> Optional[str]:
    """Tells what a slice of the parameters hashes to, in steps that every divides.

    parameters: tensors that must be the same on all replicas bit by bit, in the same order, such as
    model.parameters() after optimizer.step() where each rank holds all of them. Of sharded ones
    (DTensor) the local part is taken; what is not strided is left out. step: that has been done, from
    0. every: steps between two fingerprints. group: whose ranks must agree: a ProcessGroup of
    torch.distributed, None for all ranks, or a name, an integer from 0 or 1 to 32 bytes of text, the
    same on these ranks and on no others; with a name, replicas says how many they are, and nobody is
    named without. Of sharded parameters (FSDP, tensor parallel) a group is needed: that of the ranks
    which hold the same shards. elements: in one slice. The next fingerprint takes the next slice, so that all are
    seen after every * ceil(all / elements) steps. All ranks must give the same.

    Returns the hash, 16 hexadecimal digits, or None in other steps. The slice is hashed on the
    tensors' device, and one number is waited for. Raises TypeError or ValueError where an argument is
    not as above.
    """
    step, every = integer("fingerprint: step", step), integer("fingerprint: every", every, 1)
    elements = integer("fingerprint: elements", elements, 1)
    if step % every:
        return None
    name, replicas = _group(group, replicas)
    torch = sys.modules.get("torch")
    if torch is None:
        raise TypeError("fingerprint: parameters: want tensors of torch, which is not imported")
    parts = _parts(torch, parameters, group is None)
    total = sum(n for _, n in parts)
    if total == 0:
        return None
    start = step // every % -(-total // elements) * elements
    value = _hash(torch, parts, start, min(start + elements, total))
    LIBRARY.fingerprint(step, value, start, total, name, replicas)
    return f"{value:016x}"


def _group(group: Any, replicas: Any) -> Tuple[bytes, int]:
    if replicas is not None:
        replicas = integer("fingerprint: replicas", replicas, 1)
        if replicas not in _REPLICAS:
            raise ValueError(f"fingerprint: replicas: got {replicas}; want 1 to 2**32-1")
    dist = sys.modules.get("torch.distributed")
    if group is None:
        known = dist is not None and dist.is_available() and dist.is_initialized()
        return b"all", replicas or (dist.get_world_size() if known else 0)
    if isinstance(group, str) or hasattr(group, "__index__"):
        return text("fingerprint: group", group) or b"", replicas or 0
    try:
        ranks = dist.get_process_group_ranks(group)  # type: ignore[union-attr]
    except Exception as error:
        raise TypeError(f"fingerprint: group: got {type(group).__name__}; want a ProcessGroup, or a name") from error
    digest = hashlib.blake2b(",".join(map(str, ranks)).encode(), digest_size=8).hexdigest()
    return f"ranks {digest}".encode(), len(ranks)


def _sharded(p: Any) -> bool:
    """Whether ranks rightly hold different values: a DTensor, FSDP's flat ones, Megatron's."""
    return (
        any(not placement.is_replicate() for placement in getattr(p, "placements", ()))
        or getattr(p, "_is_flat_param", False)
        or getattr(p, "tensor_model_parallel", False)
    )


def _parts(torch: Any, parameters: Iterable[Any], of_all: bool) -> List[Tuple[Any, int]]:
    parts = []
    for i, p in enumerate(parameters):
        if not isinstance(p, torch.Tensor):
            raise TypeError(f"fingerprint: parameters: got {type(p).__name__} as number {i}; want tensors")
        if of_all and _sharded(p):
            raise ValueError(f"fingerprint: group: got None with number {i} sharded; want the ranks of one shard")
        if hasattr(p, "to_local"):
            p = p.detach().to_local()
        if p.layout == torch.strided and not p.is_quantized and p.device.type != "meta":
            parts.append((p, p.numel()))
    return parts


def _hash(torch: Any, parts: List[Tuple[Any, int]], start: int, end: int) -> int:
    """Returns the sum of x[i] * w[i] over the slice, modulo 2**64.

    x[i] are the bits of element i as a signed integer, w[i] is (i * _ODD) | 1. An odd factor loses
    no bit, so that a single element that differs always tells; and sums of integers are the same in
    whatever order a device adds.
    """
    sums: Dict[Any, Any] = {}
    begin = 0
    for p, n in parts:
        low, high = max(start, begin), min(end, begin + n)
        if low < high:
            flat = p.detach()
            flat = torch.view_as_real(flat.resolve_conj()) if p.is_complex() else flat
            flat = flat.reshape(-1)
            wide = flat.numel() // n  # 2 numbers of a complex one
            for at in range((low - begin) * wide, (high - begin) * wide, _CHUNK):
                piece = flat[at : min(at + _CHUNK, (high - begin) * wide)]
                first = begin * 2 + at  # no two pieces of one slice share it
                part = _weighed(torch, piece, first)
                sums[p.device] = sums[p.device] + part if p.device in sums else part
        begin += n
    return (sum(s.item() for s in sums.values()) + begin * _ODD) & _MASK


def _weighed(torch: Any, piece: Any, first: int) -> Any:
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[piece.element_size()]
    weights = torch.arange(first, first + piece.numel(), device=piece.device, dtype=torch.int64)
    weights.mul_(_ODD).bitwise_or_(1)
    return weights.mul_(piece.contiguous().view(bits)).sum()
