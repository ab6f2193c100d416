# SPDX-License-Identifier: Apache-2.0

"""Judges the same dumps with PyTorch's torchfrtrace and with lockstep analyze, and prints
a table: compare.py LOCKSTEP SET... A set is a folder with `dumps`, or with the dumps
themselves, and the truth in `truth.json` or a `fault_injection.log`.

torchfrtrace runs as its users run it, and where it ends with an error once more on dumps
that are repaired for it: what Gloo's recorder leaves out of pg_config is filled in from
the entries of all ranks, JSON is turned into pickles, and missing dumps are allowed. It runs
in the interpreter of this script."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

LIMIT = 1800  # s after which a run is given up


def run(command):
    """Returns a command's output, exit status, and wall s, processor s and peak MB."""
    with tempfile.TemporaryFile() as out:
        begin = time.monotonic()
        process = subprocess.Popen(["timeout", str(LIMIT), *command], stdout=out, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode(errors="replace")
    return text, process.returncode, (wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def truth_of(folder):
    log, said = folder / "fault_injection.log", folder / "truth.json"
    if log.exists():
        return {int(r) for r in re.findall(r"Rank (\d+), fault_type", log.read_text())}, None
    truth = json.loads(said.read_text())
    return set(truth.get("ranks", [])), truth["world_size"]


def rank_of(path):
    return int(re.search(r"(\d+)$", path.name).group(1))


def dumps_of(folder):
    folder = folder / "dumps" if (folder / "dumps").is_dir() else folder
    return sorted((p for p in folder.iterdir() if re.search(r"rank_\d+$|_dump_\d+$", p.name)), key=rank_of)


def written(folder, files, to):
    """Copies dumps with the times at which they were written, where these are known."""
    seen = folder / "seen.json"
    times = json.loads(seen.read_text())["written"] if seen.exists() else {}
    for file in files:
        copy = shutil.copy2(file, to)
        if ns := times.get(str(rank_of(file))):
            os.utime(copy, ns=(ns, ns))


def repair(files, to):
    dumps = {}
    for file in files:
        data = file.read_bytes()
        dumps[file.name] = json.loads(data) if data[:1] == b"{" else pickle.loads(data)
    members, descs = defaultdict(set), {}
    for name, dump in dumps.items():
        for entry in dump["entries"]:
            group, desc = entry["process_group"]
            members[group].add(rank_of(Path(name)))
            descs[group] = desc
    for name, dump in dumps.items():
        dump["pg_config"] = {
            group: {"name": group, "desc": descs[group], "ranks": str(sorted(ranks))}
            for group, ranks in members.items() if rank_of(Path(name)) in ranks
        }
        for entry in dump["entries"]:
            entry["process_group"] = tuple(entry["process_group"])
            entry.setdefault("frames", [])
            if entry["retired"]:
                entry["state"] = "completed"
        (to / name).write_bytes(pickle.dumps(dump, protocol=2))


def peer(folder, files, more=()):
    prefix = re.sub(r"\d+$", "", files[0].name)
    program = "from torch.distributed.flight_recorder.fr_trace import main; main()"
    return run([sys.executable, "-c", program, "-p", prefix, *more, str(folder)])


def peer_says(text, status):
    if status:
        return "fails: " + next((line for line in reversed(text.splitlines()) if re.match(r"[\w.]*(Error|Exception)", line)), str(status))[:70], None
    named = set()
    for ranks in re.findall(r"missing ranks: \{([\d, ]+)\}", text):
        named |= {int(r) for r in ranks.split(",")}
    kinds = set(re.findall(r"Error type: (\w+)", text)) - {"FULLY_MATCHED"}
    named |= {int(r) for r in re.findall(r"Culprit rank (\d+)", text)}
    if re.findall(r"missing ranks: \{", text):
        kinds.add("missing ranks")
    return (", ".join(sorted(kinds)) + ": " + shown(named)) if named else "nobody", named


def ours_says(text):
    result = json.loads(text)
    said, named, candidates = [], set(), set()
    for finding in (r["finding"] for h in result["hangs"] for r in h["roots"]):
        ranks = set(finding.get("lockstep.finding.ranks", []))
        may = set(finding.get("lockstep.finding.candidates", []))
        named, candidates = named | ranks, candidates | may
        said.append(f'{finding["lockstep.finding.class"]}: ' + (shown(ranks) if ranks else f"candidates {shown(may)}"))
    return "; ".join(sorted(set(said))) or "nobody", named, candidates


def shown(ranks):
    ranks = sorted(ranks)
    return ", ".join(map(str, ranks[:6])) + (f" and {len(ranks) - 6} more" if len(ranks) > 6 else "") if ranks else "none"


def mark(named, truth, candidates=frozenset()):
    if named is None:
        return "gives up"
    if named == truth:
        return "right"
    if named - truth:
        return f"names {len(named - truth)} innocent"
    if named:
        return f"names {len(named)} of {len(truth)}"
    return "undecided, truth among candidates" if truth and truth <= candidates else "misses"


def row(name, who, says, verdict, cost):
    print(f"| {name} | {who} | {says} | {verdict} | {cost[0]:.2f} s | {cost[1]:.2f} s | {cost[2]:.0f} MB |", flush=True)


def compare(lockstep, folder):
    truth, world = truth_of(folder)
    files = dumps_of(folder)
    name = f"{folder.name}, at fault: {shown(truth)}"
    with tempfile.TemporaryDirectory() as work:
        copies = Path(work) / folder.name
        copies.mkdir()
        written(folder, files, copies)
        text, status, cost = peer(copies, files)
        says, named = peer_says(text, status)
        row(name, "torchfrtrace", says, mark(named, truth), cost)
        if status and len(files) < 100:
            repaired = Path(work) / "repaired"
            repaired.mkdir()
            repair(files, repaired)
            text, status, cost = peer(repaired, files, ["--allow-incomplete-ranks"])
            says, named = peer_says(text, status)
            row("", "torchfrtrace, repaired dumps", says, mark(named, truth), cost)
        size = ["--world-size", str(world)] if world else []
        text, status, cost = run([lockstep, "analyze", "--json", *size, str(copies)])
        says, named, candidates = ours_says(text)
        row("", "lockstep", says, mark(named, truth, candidates), cost)


if __name__ == "__main__":
    print("| dumps | by | names | | wall | processor | peak |\n| --- | --- | --- | --- | --- | --- | --- |")
    for path in sys.argv[2:]:
        compare(os.path.abspath(sys.argv[1]), Path(path))
