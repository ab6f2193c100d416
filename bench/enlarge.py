# SPDX-License-Identifier: Apache-2.0

"""Writes a trace whose events are those of another, repeated: enlarge.py IN OUT N.

Each repetition comes later, under correlations, external ids and step numbers of
its own, so that it means as much work as the first. The output is not
compressed: with it a benchmark measures the reading of JSON and nothing else.
"""

import gzip
import json
import re
import sys

STEP = re.compile(r"^ProfilerStep#(\d+)$")


def ids(events, key):
    return max((e["args"][key] for e in events if isinstance(e.get("args", {}).get(key), int)), default=0) + 1


def main(source, target, times):
    opener = gzip.open if source.endswith(".gz") else open
    with opener(source, "rb") as f:
        trace = json.load(f)
    events = trace.pop("traceEvents")
    timed = [e for e in events if e.get("ph") != "M" and "ts" in e]
    span = max(e["ts"] + e.get("dur", 0) for e in timed) - min(e["ts"] for e in timed) + 1
    numbers = [int(m.group(1)) for m in (STEP.match(e.get("name", "")) for e in timed) if m]
    steps = max(numbers) - min(numbers) + 1 if numbers else 0
    keys = {key: ids(timed, key) for key in ("correlation", "External id", "Seq")}
    with open(target, "w", encoding="utf-8") as out:
        head = json.dumps(trace)[:-1]
        out.write(head + (", " if len(head) > 1 else "") + '"traceEvents": [\n')
        out.write(",\n".join(json.dumps(e) for e in events if e.get("ph") == "M"))
        separator = ",\n" if len(timed) < len(events) else ""
        for n in range(times):
            for e in timed:
                out.write(separator + json.dumps(shifted(e, n, n * span, n * steps, keys)))
                separator = ",\n"
        out.write("\n]}\n")


def shifted(event, n, later, steps, keys):
    e = dict(event, ts=round(event["ts"] + later, 3))
    match = STEP.match(e.get("name", ""))
    if match:
        e["name"] = "ProfilerStep#%d" % (int(match.group(1)) + steps)
    args = e.get("args")
    if isinstance(args, dict):
        moved = {k: args[k] + n * by for k, by in keys.items() if isinstance(args.get(k), int) and args[k] > 0}
        if moved:
            e["args"] = {**args, **moved}
    return e


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
