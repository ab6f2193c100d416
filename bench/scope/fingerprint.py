# SPDX-License-Identifier: Apache-2.0

"""Prints what a fingerprint of parameters costs, by the elements of its slice, in µs.

Each is the time from the call to its return, which waits for the device: what a step
in which one is taken lasts longer. The model has PARAMETERS of bfloat16, and 4,096
tensors. On a GPU also what a fingerprint takes of the device's memory at most.
"""

import os
import statistics
import time

CALLS = int(os.environ.get("SAMPLES", "400")) // 20
PARAMETERS = int(os.environ.get("PARAMETERS", str(1 << 26)))
TENSORS = 4096


def measure(torch, device):
    import lockstep_scope

    model = [torch.randn(PARAMETERS // TENSORS, device=device, dtype=torch.bfloat16) for _ in range(TENSORS)]
    for elements in (1 << 16, 1 << 20, 1 << 22, 1 << 24):
        took = []
        if device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        for step in range(CALLS + 2):
            begin = time.perf_counter_ns()
            lockstep_scope.fingerprint(model, step, every=1, group="bench", replicas=1, elements=elements)
            took.append((time.perf_counter_ns() - begin) / 1e3)
        took = took[2:]  # the first ones make the ring, and compile
        memory = f"   {(torch.cuda.max_memory_allocated() - before) >> 20} MiB" if device == "cuda" else ""
        print(f"fingerprint of {elements:>9} elements on {device:<5} p50 {statistics.median(took):9.0f} us   "
              f"max {max(took):9.0f} us{memory}")  # fmt: skip
    begin = time.perf_counter_ns()
    for step in range(1, 1001):
        lockstep_scope.fingerprint(model, step, every=10_000, group="bench", replicas=1)
    print(f"in a step that has none, {(time.perf_counter_ns() - begin) / 1e6:.2f} us")


def main():
    try:
        import torch
    except ImportError:
        print("no PyTorch: fingerprints are not measured")
        return
    torch.set_num_threads(1)
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        measure(torch, device)


if __name__ == "__main__":
    main()
