# SPDX-License-Identifier: Apache-2.0

"""Prints what a pair of begin and end of a scope costs from Python, in ns.

Each sample is the mean of PAIRS pairs, in time of the core as the kernel counts it;
the base, a `with` of a context that does nothing, is taken in turns and subtracted.
"""

import contextlib
import os
import statistics
import sys
import time

PAIRS = 500
WARM_UP = 140  # samples, after which the whole lane has been written once
PAUSE_S = 0.018  # a lane takes only so many scopes a second: more are left out, which costs less
SAMPLES = int(os.environ.get("SAMPLES", "400"))
GOAL_NS = 2000


def with_context(context):
    now, each = time.thread_time_ns, range(PAIRS)
    begin = now()
    for _ in each:
        with context:
            pass
    return (now() - begin) / PAIRS


def with_lookup(scope):
    now, each = time.thread_time_ns, range(PAIRS)
    begin = now()
    for _ in each:
        with scope("work"):
            pass
    return (now() - begin) / PAIRS


def measure(call, argument, null):
    bases, costs = [], []
    for _ in range(SAMPLES):
        bases.append(with_context(null))
        costs.append(call(argument))
        time.sleep(PAUSE_S)
    return statistics.median(bases), costs


def report(what, base, costs):
    p50, mean = statistics.median(costs) - base, statistics.fmean(costs) - base
    print(f"{what:<46} p50 {p50:7.0f} ns   mean {mean:7.0f} ns   (base {base:.0f} ns)")
    return p50


def main():
    import lockstep_scope

    status = lockstep_scope.status()
    null = contextlib.nullcontext()
    here = "with the library" if status["library"] else "without the library"
    work = lockstep_scope.scope("work")
    for _ in range(WARM_UP):
        with_context(work)
        time.sleep(PAUSE_S)
    worst = report(f"scope kept in a variable, {here}", *measure(with_context, work, null))
    worst = max(worst, report(f'scope("work") each time, {here}', *measure(with_lookup, lockstep_scope.scope, null)))
    if status["library"]:
        lockstep_scope.every(2)
        lockstep_scope.step(1)
        report("sampled, in a step that is left out", *measure(with_context, work, null))
        lockstep_scope.step(2)
        worst = max(worst, report("sampled, in a step that is recorded", *measure(with_context, work, null)))
        print(f"python {sys.version.split()[0]}, {status['ring']}")
    if worst > GOAL_NS:
        sys.exit(f"a pair costs {worst:.0f} ns; want {GOAL_NS} or less")


main()
