# SPDX-License-Identifier: Apache-2.0

"""Reads one PyTorch profiler trace with Python's json and does what
internal/kineto does with it: select kernels, copies, annotations and steps (of a
CPU run the outermost host operators and the collectives of gloo, too), join each
device operation with the call that launched it (correlation) and each collective
with its arguments (its own, else those of the host operator with its external
id), file everything under its step and order it. Prints one JSON object of
counts.

It is written to be fast: one pass over the events, dictionaries, no classes.
What internal/kineto does beyond this (normalised names, sequence numbers,
process groups, checks, limits) is left out, in Python's favour.
"""

import bisect
import gzip
import json
import re
import sys

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
RUNTIME = {"cuda_runtime", "cuda_driver"}
STEP = re.compile(r"^ProfilerStep#(\d+)$")


def load(path):
    with open(path, "rb") as f:
        packed = f.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if packed else open(path, "rb") as f:
        return json.load(f)


def select(events):
    device, host, scopes, gloo = [], [], [], []
    launches, arguments, starts, steps = {}, {}, [], []
    for e in events:
        if e.get("ph") != "X":
            continue
        cat = e.get("cat")
        if cat in DEVICE:
            device.append(e)
        elif cat in RUNTIME:
            correlation = e["args"].get("correlation")
            if correlation is not None:
                launches[correlation] = e
        elif cat == "cpu_op":
            name = e["name"]
            if name == "record_param_comms":
                arguments[e["args"].get("External id")] = e["args"]
            elif name.startswith("c10d::"):
                starts.append(e)
            else:
                host.append(e)
        elif cat == "user_annotation":
            name = e["name"]
            step = STEP.match(name)
            if step:
                steps.append((e["ts"], e["ts"] + e["dur"], int(step.group(1))))
            elif name.startswith("gloo:"):
                gloo.append(e)
            elif name.startswith("nccl:"):
                arguments.setdefault(e["args"].get("External id"), e["args"])
            else:
                scopes.append(e)
    if not steps:  # the whole trace is one
        work = device + host + scopes + gloo
        if work:
            steps.append((min(e["ts"] for e in work), max(e["ts"] + e.get("dur", 0) for e in work) + 1, 0))
    return device, host, scopes, gloo, launches, arguments, starts, sorted(steps)


def elements(dims):
    """How many elements all tensors of "Input Dims" have."""
    if not dims:
        return 0
    if isinstance(dims[0], list) or isinstance(dims[-1], list):
        return sum(elements(d) for d in dims)
    product = 1
    for d in dims:
        product *= d
    return product


def outermost(host, collectives):
    """The operators that lie in no other of their thread."""
    ends, kept = {}, []
    for e in sorted(host + collectives, key=lambda e: (e["ts"], -e["dur"])):
        if e["ts"] + e["dur"] > ends.get(e["tid"], -1):
            ends[e["tid"]] = e["ts"] + e["dur"]
            kept.append(e)
    mine = {id(e) for e in collectives}
    return [e for e in kept if id(e) not in mine]


def join_gloo(gloo, starts):
    """Yields each run of a collective with the n-th launch of its size."""
    waiting = {}
    for e in sorted(starts, key=lambda e: e["ts"]):
        waiting.setdefault(elements(e["args"].get("Input Dims")), []).append(e)
    for queue in waiting.values():
        queue.reverse()
    for e in sorted(gloo, key=lambda e: e["ts"]):
        queue = waiting.get(elements(e["args"].get("Input Dims")))
        yield e, queue.pop() if queue else None


def join(device, host, scopes, gloo, launches, arguments, starts, steps):
    begins = [s[0] for s in steps]

    def step_of(ts):
        i = bisect.bisect_right(begins, ts) - 1
        return steps[i][2] if i >= 0 and ts < steps[i][1] else None

    ops = []

    def add(e, lane, launch, collective):
        enqueued = e["ts"] if launch is None else launch["ts"]
        ops.append((e["name"], e["ts"], e.get("dur", 0), lane, launch, collective, step_of(enqueued)))

    for e in device:
        args = e["args"]
        collective = None
        if "nccl" in e["name"] or "rccl" in e["name"]:
            collective = args if "Collective name" in args else arguments.get(args.get("External id"), {})
        add(e, args.get("stream"), launches.get(args.get("correlation")), collective)
    for e, launch in join_gloo(gloo, starts):
        add(e, e["tid"], launch, e["args"])
    for e in scopes:
        add(e, e["tid"], None, None)
    if not device:
        for e in outermost(host, starts):
            add(e, e["tid"], None, None)
    for begin, end, number in steps:
        ops.append(("step", begin, end - begin, 0, None, None, number))
    ops.sort(key=lambda op: (op[6] is not None, op[6] or 0, op[1]))
    return ops


def main(path):
    events = load(path)["traceEvents"]
    ops = join(*select(events))
    counts = {
        "events": len(events),
        "operations": len(ops),
        "launched": sum(op[4] is not None for op in ops),
        "collectives": sum(op[5] is not None for op in ops),
        "steps": len({op[6] for op in ops if op[6] is not None}),
    }
    json.dump(counts, sys.stdout)
    print()


if __name__ == "__main__":
    main(sys.argv[1])
