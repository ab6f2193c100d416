#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measure lockstep_scope.fingerprint over a model's parameters, and print what came of it.

The last line is one JSON object: times of calls, memory, the
hashes of all slices, of a copy, of the same bits on the CPU, and with one bit flipped.
"""

import argparse
import json
import statistics
import time

import torch
from lockstep_scope import fingerprint

CALLS = 12
SLICE = 1 << 22  # elements, the default of fingerprint
WIDTH = 1024
TYPES = {"bfloat16": (torch.bfloat16, torch.int16), "float32": (torch.float32, torch.int32)}


class Cuda:
    name = "cuda"
    parameters = 40_000_000

    def wait(self):
        torch.cuda.synchronize()

    def extra_mib(self, call):
        """Returns how much memory of the device the call took beside what was there."""
        self.wait()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        self.wait()
        return (torch.cuda.max_memory_allocated() - before) / 2**20


class StandIn:
    name = "cpu"
    parameters = 5_000_000

    def wait(self):
        pass

    def extra_mib(self, call):
        call()
        return None


def model(device, dtype):
    """Returns parameters of many shapes, as a transformer has them: matrices and vectors."""
    generator = torch.Generator().manual_seed(7)
    parameters, total = [], 0
    while total < device.parameters:
        for shape in ((WIDTH, WIDTH), (WIDTH,), (4 * WIDTH, WIDTH), (4 * WIDTH,), (3, 5, 7)):
            p = torch.randn(shape, generator=generator).to(dtype).to(device.name)
            parameters.append(torch.nn.Parameter(p, requires_grad=False))
            total += p.numel()
    return parameters, total


def hashes(parameters, total):
    """Returns the hash of each slice."""
    return [fingerprint(parameters, n, every=1, group="kit") for n in range(-(-total // SLICE))]


def times(device, parameters, total):
    """Returns how long calls of all slices in turn took, ms."""
    taken = []
    for n in range(CALLS + 3):
        device.wait()
        began = time.perf_counter()
        fingerprint(parameters, n % -(-total // SLICE), every=1, group="kit")
        taken.append((time.perf_counter() - began) * 1e3)
    return taken[3:]  # the first ones load kernels


def flip(parameter, as_integer):
    """Flips the lowest bit of one element in the middle."""
    bits = parameter.data.view(-1).view(as_integer)
    bits[bits.numel() // 2] ^= 1


def measure(device, dtype, as_integer):
    parameters, total = model(device, dtype)
    taken = times(device, parameters, total)
    first = hashes(parameters, total)
    copy = [p.detach().clone() for p in parameters]
    at_home = [p.detach().cpu() for p in parameters]
    answer = {
        "device": device.name,
        "parameters": total,
        "tensors": len(parameters),
        "slices": len(first),
        "call_ms": statistics.median(taken),
        "call_max_ms": max(taken),
        "extra_mib": device.extra_mib(lambda: fingerprint(parameters, 0, every=1, group="kit")),
        "hashes": first,
        "of_a_copy": hashes(copy, total),
        "on_the_cpu": hashes(at_home, total),
    }
    begin = sum(p.numel() for p in copy[: len(copy) // 2])
    flipped = copy[len(copy) // 2]
    flip(flipped, as_integer)
    answer["flipped_slice"] = (begin + flipped.numel() // 2) // SLICE
    answer["flipped"] = hashes(copy, total)
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    parser.add_argument("--type", choices=sorted(TYPES), required=True)
    args = parser.parse_args()
    device = Cuda() if args.device == "cuda" else StandIn()
    print(json.dumps(measure(device, *TYPES[args.type])))


if __name__ == "__main__":
    main()
