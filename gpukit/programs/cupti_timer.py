# SPDX-License-Identifier: Apache-2.0
"""Reads the GPU's %globaltimer between two stamps of REALTIME, by a Triton kernel; prints
one JSON object."""

import json
import time

READINGS = 500


def read():
    import torch
    import triton
    import triton.language as tl
    from triton.language.extra.cuda import globaltimer

    globals()["tl"], globals()["globaltimer"] = tl, globaltimer
    kernel = triton.jit(stamp)
    out = torch.zeros(1, dtype=torch.int64, device="cuda")
    readings = []
    for i in range(READINGS + 20):
        before = time.time_ns()
        kernel[(1,)](out, num_warps=1)
        torch.cuda.synchronize()
        after = time.time_ns()
        if i >= 20:
            readings.append([before, out.item(), after])
    return readings


def stamp(out):
    tl.store(out, globaltimer())  # noqa: F821: set by read, since Triton may be missing


if __name__ == "__main__":
    try:
        print(json.dumps({"reason": "", "readings": read()}))
    except Exception as error:
        print(json.dumps({"reason": f"{type(error).__name__}: {error}".splitlines()[0][:300], "readings": []}))
