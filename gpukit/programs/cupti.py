# SPDX-License-Identifier: Apache-2.0
"""Runs windows of equal training steps, recorded in turn by Lockstep's CUPTI client and by
another profiler, and writes down when each began and ended (part `cupti` reads it).

  cupti.py --plan PLAN --mode MODE --folder FOLDER [--library PLUGIN] [--stand-in LIBCUPTI]
"""

import argparse
import ctypes
import json
import os
import time
import traceback

STEPS = 10  # of a window
WARMUP = 10
HEAT = 3  # steps before a window, so that the device's clock is that of work
BRACKETS = 300
BLOCKS = "ABBABAABBAABABBA"  # A: recording, B: paused
BLOCK_STEPS = 20
TURN_STEPS = 30
TURNS = 8  # of each process
PATIENCE_S = 130.0  # to wait for another process
ACTIVE = 0


def raw():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


class Library:
    """The plugin, which libcuda has loaded, or the stand-in's driver. Without a path, none."""

    def __init__(self, path):
        self.calls = ctypes.CDLL(path) if path else None
        self.paused = False
        if self.calls:
            self.calls.lockstep_status.restype = ctypes.c_char_p

    def pause(self):
        """Pauses once until the next resume: the library counts pauses."""
        if self.paused or not self.calls:
            return ACTIVE
        self.paused = True
        return self.calls.lockstep_cupti_pause()

    def resume(self):
        self.paused = False
        return self.calls.lockstep_cupti_resume() if self.calls else ACTIVE

    def status(self):
        return self.calls.lockstep_status().decode("utf-8", "replace") if self.calls else ""


class Run:
    def __init__(self, options, device, library):
        self.options, self.device, self.library = options, device, library
        self.facts = {"pid": os.getpid(), "plan": options.plan, "mode": options.mode}
        self.facts.update(windows=[], brackets=[], blocks=[], turns=[])

    def save(self):
        path = os.path.join(self.options.folder, "facts.json")
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump(self.facts, file)
        os.replace(path + ".tmp", path)

    def steps(self, count):
        for _ in range(count):
            self.device.step()
        self.device.sync()

    def work(self, window):
        """Does what every window holds. The sentinels come first: a profiler that loses
        the first kernels of a session loses these."""
        window["begin_raw"], window["begin_real"] = raw(), time.time_ns()
        self.device.sentinels()
        self.device.sync()
        first = self.device.mark()
        for _ in range(STEPS):
            self.device.step()
        last = self.device.mark()
        self.device.sync()
        window["events_ms"] = self.device.between(first, last)
        window["end_raw"], window["end_real"] = raw(), time.time_ns()

    def window(self, kind):
        window = {"kind": kind, "steps": STEPS, "trace": "", "pause": ACTIVE, "resume": []}
        self.facts["windows"].append(window)
        self.steps(HEAT)
        if kind.startswith("theirs"):
            self.theirs(window)
        else:
            self.work(window)
        window["status"] = self.library.status()

    def theirs(self, window):
        window["trace"] = f"trace-{len(self.facts['windows'])}.json"
        pauses = window["kind"] == "theirs"
        if pauses:
            window["pause"] = self.library.pause()
        profiler = self.device.profile_begin()
        self.work(window)
        self.device.profile_end(profiler)
        if pauses:
            self.resume(window)
        self.device.profile_export(profiler, os.path.join(self.options.folder, window["trace"]))

    def resume(self, window):
        """Asks to go on, as the Python package does at once, then again while work runs: a
        profiler may end in the next call of the runtime."""
        for _ in range(5):
            window["resume"].append(self.library.resume())
            if window["resume"][-1] == ACTIVE:
                return
            self.steps(1)
            time.sleep(0.02)

    def bracket(self):
        """Puts one kernel between two stamps of the host, many times."""
        for _ in range(BRACKETS):
            before = raw()
            self.device.tiny()
            self.device.sync()
            self.facts["brackets"].append([before, raw()])

    def timed(self, count):
        taken = []
        for _ in range(count):
            before = raw()
            self.device.step()
            self.device.sync()
            taken.append(raw() - before)
        return taken

    def cost(self):
        for kind in BLOCKS:
            code = self.library.resume() if kind == "A" else self.library.pause()
            self.steps(3)
            block = {"kind": kind, "code": code, "begin_raw": raw()}
            block["took"] = self.timed(BLOCK_STEPS)
            block["end_raw"] = raw()
            self.facts["blocks"].append(block)
        self.library.resume()

    def turns(self, me, of):
        """Takes turns with other processes, so that one alone uses the device at a time: in
        order, then in reverse."""
        if self.options.at_rest:
            self.library.pause()
        for turn in range(TURNS):
            order = list(range(of)) if turn % 2 == 0 else list(reversed(range(of)))
            place = turn * of + order.index(me)
            if place > 0:
                wait_for(os.path.join(self.options.wait, f"turn-{place - 1}"))
            self.steps(3)
            self.facts["turns"].append(self.timed(TURN_STEPS))
            with open(os.path.join(self.options.wait, f"turn-{place}"), "w", encoding="utf-8"):
                pass


def wait_for(path):
    until = time.monotonic() + PATIENCE_S
    while not os.path.exists(path):
        if time.monotonic() > until:
            name = os.path.basename(path)
            raise TimeoutError(f"wait for {name}: got nothing in {PATIENCE_S:.0f} s; another process did not come to its end")
        time.sleep(0.001)


# What the plans do after the start. The last window of each is followed by the end of
# the process at once.
PLANS = {
    "compare": ("ours", "ours", "theirs", "ours", "theirs", "ours"),
    "alone": ("ours", "bracket", "cost", "ours"),
    "before": ("ours", "theirs", "ours"),
    "silent": ("ours", "settle", "step", "theirs-unpaused", "ours", "resume", "ours", "theirs"),
    "turns": ("turns",),
}


def carry_out(run):
    options = run.options
    first = options.plan == "before"
    if first:  # before the first call of CUDA's runtime
        window = {"kind": "theirs-first", "steps": 0, "trace": "", "pause": run.library.pause(), "resume": []}
        profiler = run.device.profile_begin()
    run.facts.update(run.device.start())
    run.steps(WARMUP)
    run.work({})  # loads what windows hold beside steps, which may copy and set memory
    run.device.tiny()
    run.device.sync()
    if first:
        run.device.profile_end(profiler)
        run.resume(window)
        window["status"] = run.library.status()
        run.facts["windows"].append(window)
    if options.wait and options.plan != "turns":
        with open(os.path.join(options.folder, "ready"), "w", encoding="utf-8"):
            pass
        wait_for(options.wait)
        run.steps(3)
    for what in PLANS[options.plan]:
        if what == "bracket":
            run.bracket()
        elif what == "cost":
            run.cost()
        elif what == "turns":
            run.turns(options.me, options.of)
        elif what == "settle":
            time.sleep(1.5)  # the library flushes once a second
        elif what == "step":
            run.steps(1)  # CUPTI is within a buffer of the library's
        elif what == "resume":
            run.facts["resumed"] = run.library.resume()
        else:
            run.window(what)
    run.facts["done_real"] = time.time_ns()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan", choices=sorted(PLANS), required=True)
    parser.add_argument("--mode", choices=("eager", "compile", "graph"), default="eager")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--library", default="")
    parser.add_argument("--stand-in", default="")
    parser.add_argument("--device", default="cuda", help="cpu: tries everything but the device")
    parser.add_argument("--at-rest", action="store_true")
    parser.add_argument("--wait", default="", help="a file to wait for after the warm-up; of turns, their folder")
    parser.add_argument("--me", type=int, default=0)
    parser.add_argument("--of", type=int, default=1)
    options = parser.parse_args()
    if options.stand_in:
        from cupti_stand_in import StandIn

        device = StandIn(options.mode, options.stand_in, options.library)
    else:
        from cupti_torch import Torch

        device = Torch(options.mode, options.device)
    run = Run(options, device, Library(options.library))
    try:
        carry_out(run)
    except Exception as error:
        run.facts["error"] = f"{type(error).__name__}: {error}".splitlines()[0][:400]
        traceback.print_exc()
    run.save()
    return 1 if "error" in run.facts else 0


if __name__ == "__main__":
    raise SystemExit(main())
