# SPDX-License-Identifier: Apache-2.0

"""Scopes, steps and links, without a framework."""

import os
import pathlib
import unittest

from lockstep_scope import elf

from . import ring
from .helper import LIBRARY, Case

SCOPES = """
    import threading
    from lockstep_scope import scope, step

    step(7)
    with scope("outer", phase="train"):
        with scope("inner"):
            pass
    try:
        with scope("raises"):
            raise KeyError("kept")
    except KeyError as error:
        assert error.args == ("kept",)

    @scope("decorated")
    def function(x, *, y):
        "doc"
        return x + y
    assert function(1, y=2) == 3 and function.__name__ == "function" and function.__doc__ == "doc"

    @scope("generator")
    def generate():
        got = yield 1
        return got
    g = generate()
    next(g)
    with scope("between"):  # closed inside, though the generator's is open
        pass
    try:
        g.send(5)
    except StopIteration as stop:
        assert stop.value == 5

    with scope("recursive"), scope("recursive"):
        pass
    thread = threading.Thread(target=scope("elsewhere")(lambda: None))
    thread.start()
    thread.join()
    step(8)
"""


class Scopes(Case):
    def test_recorded(self):
        self.run_program(SCOPES, under=None)
        r = self.ring()
        self.assertEqual(r.steps, [7, 8])
        self.assertEqual(sorted(r.names()), sorted([
            "outer", "inner", "raises", "decorated", "generator", "between", "recursive", "recursive", "elsewhere",
        ]))  # fmt: skip
        by_name = {s["name"]: s for s in r.scopes}
        outer, inner = by_name["outer"], by_name["inner"]
        self.assertEqual((outer["phase"], inner["phase"]), ("train", ""))
        self.assertEqual((outer["depth"], inner["depth"]), (0, 1))
        self.assertTrue(outer["begin"] <= inner["begin"] <= inner["end"] <= outer["end"])
        self.assertNotEqual(by_name["elsewhere"]["thread"], outer["thread"])
        self.assertEqual({s["step"] for s in r.scopes}, {7})
        self.assertEqual(r.drops[17], 0)

    def test_asynchronous_generators(self):
        self.run_program("""
            import asyncio
            from lockstep_scope import scope
            told = []
            @scope("generator")
            async def generate():
                try:
                    told.append((yield 1))
                    try: yield 2
                    except KeyError: told.append("thrown")
                    yield 3
                finally: told.append("closed")
            async def main():
                g = generate()
                assert await g.__anext__() == 1
                with scope("between"): pass
                assert await g.asend("sent") == 2
                assert await g.athrow(KeyError()) == 3
                await g.aclose()
                assert [x async for x in generate()] == [1, 2, 3]
            asyncio.run(main())
            assert told == ["sent", "thrown", "closed", None, "closed"], told
        """, under=None)  # fmt: skip
        scopes = self.ring().scopes
        self.assertEqual([s["name"] for s in scopes], ["generator", "between", "generator"])
        self.assertGreater(scopes[0]["end"], scopes[1]["end"])

    def test_coroutines_interleave(self):
        self.run_program("""
            import asyncio
            from lockstep_scope import scope

            @scope("a")
            async def a(): await asyncio.sleep(0.01)
            @scope("b")
            async def b(): await asyncio.sleep(0.03)
            async def both(): await asyncio.gather(a(), b())
            asyncio.run(both())
        """, under=None)  # fmt: skip
        r = self.ring()
        a, b = r.scopes
        self.assertEqual((a["name"], b["name"]), ("a", "b"))
        self.assertGreaterEqual(b["end"] - b["begin"], 30_000_000)
        self.assertLess(a["end"], b["end"])

    def test_sampled_steps(self):
        self.run_program("""
            from lockstep_scope import every, scope, step
            work = scope("work")
            with work: pass  # before the first step
            every(3)
            for n in range(7):
                step(n)
                with work:
                    with work: pass
            step(9)
            spanning = scope("spanning")
            with spanning:
                step(10)
            with spanning:  # begins in a step that is left out
                step(12)
        """, under=None)  # fmt: skip
        r = self.ring()
        self.assertEqual(r.steps, [0, 1, 2, 3, 4, 5, 6, 9, 10, 12])
        none = 0xFFFFFFFF
        self.assertEqual([s["step"] for s in r.scopes if s["name"] == "work"], [none, 0, 0, 3, 3, 6, 6])
        self.assertEqual([s["step"] for s in r.scopes if s["name"] == "spanning"], [9])
        self.assertEqual(r.drops[17], 0, "no end without a begin")

    def test_disabled(self):
        self.run_program("""
            from lockstep_scope import disable, enable, scope, step
            with scope("around"):
                disable()
                with scope("left out"): step(1)
                with scope("outlives"):
                    enable()
            with scope("again"): pass
        """, under=None)  # fmt: skip
        r = self.ring()
        self.assertEqual(r.names(), ["around", "again"])
        self.assertEqual((r.steps, r.drops[17]), ([1], 0))

    def test_names_beyond_the_limit(self):
        out, _ = self.run_program("""
            from lockstep_scope import scope, status
            for i in range(600):
                with scope("name %d" % i): pass
            with scope("\\u00e9" * 60): pass
            print(status()["left_out"])
        """, under=None)  # fmt: skip
        self.assertEqual(int(out), 601 - 512)
        self.assertEqual(len(self.ring().scopes), 512)

    def test_scopes_are_kept_once(self):
        # However their phase is spelled; and those that are kept go on beyond the limit.
        out, _ = self.run_program("""
            from lockstep_scope import scope, status
            for i in range(256):
                for phase in ("eval", 4, None, 0, ""):
                    scope("name %d" % i, phase)
            print(status()["left_out"])
            for phase in ("eval", 4, None, 0, ""):
                scope("one more", phase)
            print(status()["left_out"])
            with scope("name 3", phase="eval"), scope("name 4"): pass
        """, under=None)  # fmt: skip
        self.assertEqual(out.split(), ["0", "5"])
        self.assertEqual([(s["name"], s["phase"]) for s in self.ring().scopes], [("name 3", "eval"), ("name 4", "")])

    def test_wrong_use_raises(self):
        self.run_program("""
            from lockstep_scope import every, install, scope, status, step
            for call, kind in ((lambda: scope(3), TypeError), (lambda: scope("x", "lunch"), ValueError),
                               (lambda: scope("x", 7), ValueError), (lambda: every(0), ValueError),
                               (lambda: scope([]), TypeError), (lambda: scope("x", []), ValueError),
                               (lambda: every("2"), TypeError), (lambda: install("modules,nope"), ValueError),
                               (lambda: step("x"), TypeError), (lambda: step(None), TypeError),
                               (lambda: step(1.5), TypeError), (lambda: step(2**63), ValueError),
                               (lambda: step(-2**63 - 1), ValueError)):
                try:
                    call()
                except kind as error:
                    assert "got " in str(error) and "; want " in str(error), error
                    continue
                raise SystemExit("no " + kind.__name__)
            assert status()["step"] is None, status()
            class Number:
                def __index__(self): return 2**40
            step(Number())
            step(2**63 - 1)
            assert status()["step"] == 2**63 - 1
        """, under=None)  # fmt: skip
        self.assertEqual(self.ring().steps, [2**40, 2**63 - 1])

    def test_what_is_no_span_is_told_once(self):
        for value in ("None", "5", "'x'", "b'x'", "object()", "'00-zz-1-01'", "Context(2**128, 1)", "Context(1, 2**64)",
                      "Context(-1, 1)", "Context('a', 'b')", "Raises()",
                      "'00-" + "0" * 32 + "-b7ad6b7169203331-01'",
                      "'00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01'",
                      "'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'",
                      "'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more'"):  # fmt: skip
            with self.subTest(value=value):
                _, err = self.run_program(f"""
                    from lockstep_scope import link
                    class Context:
                        def __init__(self, trace_id, span_id): self.trace_id, self.span_id = trace_id, span_id
                    class Raises:
                        def __getattr__(self, name): raise OSError
                    for _ in range(3):
                        link({value})
                    link(Context(0, 0))
                """, under=None, PYTHONWARNINGS="always")  # fmt: skip
                self.assertEqual(err.count("RuntimeWarning: link: got "), 1, err)
                self.assertIn("program.py:8: ", err)
                self.assertEqual(ring.read(self.rings), [])

    def test_links(self):
        self.run_program("""
            from lockstep_scope import link, step
            step(4)
            link("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            class Context:
                trace_id, span_id = 0x1, 0x2
            link(Context)
            class Invalid:
                trace_id, span_id = 0, 2
            link(Invalid)
            link("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-01-more")
        """, under=None, PYTHONWARNINGS="error")  # fmt: skip
        r = self.ring()
        self.assertEqual(r.links, [
            {"step": 4, "trace": "0af7651916cd43dd8448eb211c80319c", "span": "b7ad6b7169203331"},
            {"step": 4, "trace": "0" * 31 + "1", "span": "0" * 15 + "2"},
            {"step": 4, "trace": "0af7651916cd43dd8448eb211c80319c", "span": "b7ad6b7169203332"},
        ])  # fmt: skip
        self.assertEqual(r.drops[25], 0)

    def test_current_span(self):
        # The interface of opentelemetry.trace, as far as it is asked.
        self.run_program("""
            import sys, types
            class Context: trace_id, span_id = 10, 11
            class Span:
                attributes = {}
                def get_span_context(self): return Context
                def is_recording(self): return True
                def set_attributes(self, more): self.attributes.update(more)
            api = types.ModuleType("opentelemetry.trace")
            api.get_current_span = lambda: Span()
            import lockstep_scope
            lockstep_scope.install("spans")
            lockstep_scope.step(0)  # not imported yet: nothing to ask
            sys.modules["opentelemetry.trace"] = api
            lockstep_scope.step(5)
            assert Span.attributes == {"lockstep.step": 5, "lockstep.rank": 3, "lockstep.job.id": "j"}, Span.attributes
            lockstep_scope.uninstall()
            lockstep_scope.step(6)
        """, under=None, RANK="3", WORLD_SIZE="4", LOCKSTEP_JOB_ID="j")  # fmt: skip
        self.assertEqual(self.ring().links, [{"step": 5, "trace": "0" * 31 + "a", "span": "0" * 15 + "b"}])

    def test_garbage_collection(self):
        self.run_program("""
            import gc
            gc.disable()
            from lockstep_scope import install, scope, uninstall
            before = list(gc.callbacks)
            install("gc")
            gc.collect()  # makes no ring
            with scope("work"): gc.collect()
            gc.collect(0)
            uninstall()
            assert gc.callbacks == before
            gc.collect()
        """, under=None)  # fmt: skip
        r = self.ring()
        self.assertEqual(r.names(), ["work", "garbage_collection", "garbage_collection"])
        self.assertEqual([s["depth"] for s in r.scopes], [0, 1, 0])

    def test_forked_child(self):
        self.run_program("""
            import os
            from lockstep_scope import scope
            if os.fork() == 0:
                with scope("of the child"): pass
                raise SystemExit
            os.wait()
            with scope("of the parent"): pass
            if os.fork() == 0:
                with scope("of the parent"): pass  # its ring is the parent's: nothing
                with scope("unknown"): pass
                raise SystemExit
            os.wait()
        """, under=None)  # fmt: skip
        names = sorted(r.names() for r in ring.read(self.rings))
        self.assertEqual(names, [["of the child"], ["of the parent"]])


class WithoutLibrary(Case):
    def test_nothing_happens_and_it_is_said(self):
        other = self.work / "other.so"
        other.write_bytes(b"not a library of ours")
        out, _ = self.run_program("""
            import gc
            before = list(gc.callbacks)
            import lockstep_scope as l
            l.install()
            l.step(3)
            l.link("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
            with l.scope("x"), l.scope("y", phase="eval"): pass
            assert l.scope("f")(lambda: 4)() == 4
            assert gc.callbacks == before
            print(l.status()["library"], l.status()["problem"], l.status()["hooks"]["gc"])
        """, under=None, LOCKSTEP_LIBRARY=None, NCCL_PROFILER_PLUGIN=str(other))  # fmt: skip
        self.assertIn("None find library", out)
        self.assertIn(f"NCCL_PROFILER_PLUGIN={other}: it is no 64-bit ELF file", out)
        self.assertIn("no library", out)
        self.assertEqual(list(self.rings.iterdir()), [])

    def problem(self, **env):
        """What status() says of a library that is looked for, and stderr, in a program that goes on."""
        out, err = self.run_program(
            "import lockstep_scope as l\nwith l.scope('x'): print(l.status()['library'], l.status()['problem'])",
            under=None, **env,
        )  # fmt: skip
        self.assertTrue(out.startswith("None find library: "), out)
        self.assertEqual(list(self.rings.iterdir()), [])
        return out, err

    def test_what_was_found_instead(self):
        pipe, empty, text = (self.work / name for name in ("pipe.so", "empty.so", "text.so"))
        os.mkfifo(pipe)
        empty.touch()
        text.write_bytes(b"lockstep_scope_begin\0" * 9)
        maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
        other = next(line.split()[-1] for line in maps.splitlines() if ".so" in line)  # some tool's library
        for value, reason in (("lockstep", "it is no path"), ("/nowhere/l.so", "No such file or directory"),
                              (str(self.work), "it is no regular file"), (str(pipe), "it is no regular file"),
                              (str(empty), "it is no 64-bit ELF file"), (str(text), "it is no 64-bit ELF file"),
                              (other, "it is not Lockstep's library")):  # fmt: skip
            with self.subTest(value=value):
                out, err = self.problem(LOCKSTEP_LIBRARY=value)
                self.assertIn(f"LOCKSTEP_LIBRARY={value}: {reason};", out)
                self.assertEqual(err, "")

    def test_a_part_of_the_library(self):
        # The loader would map pages that are not there.
        whole, part = pathlib.Path(LIBRARY).read_bytes(), self.work / "part.so"
        for size in (63, 64, 300, 20_000, 100_000, len(whole) // 2, len(whole) - 1):
            with self.subTest(size=size):
                part.write_bytes(whole[:size])
                out, _ = self.problem(LOCKSTEP_LIBRARY=str(part))
                self.assertIn(f"LOCKSTEP_LIBRARY={part}: it is no", out)

    def test_blocks_that_were_not_written(self):
        whole, path = pathlib.Path(LIBRARY).read_bytes(), self.work / "damaged.so"
        self.assertIn(b"\0lockstep_scope_push\0", elf.symbol_names(LIBRARY))
        for at in range(0, len(whole), 4096):
            path.write_bytes(whole[:at] + bytes(len(whole) - at))
            with self.assertRaises(elf.NotWhole):
                elf.symbol_names(str(path))

    def test_wrong_headers(self):
        whole, path = pathlib.Path(LIBRARY).read_bytes(), self.work / "damaged.so"
        for at in range(64 + 56 * 6):
            path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
            try:
                elf.symbol_names(str(path))  # some bytes are of no account
            except elf.NotWhole:
                continue

    def test_told_where_it_is_asked_for(self):
        for debug, told in (("1", True), ("0", False)):
            _, err = self.problem(LOCKSTEP_LIBRARY="/nowhere/l.so", LOCKSTEP_DEBUG=debug)
            self.assertEqual("lockstep_scope: find library: LOCKSTEP_LIBRARY=/nowhere/l.so: " in err, told, err)

    def test_found_by_other_variables(self):
        for variable in ("NCCL_PROFILER_PLUGIN", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
            out, _ = self.run_program("import lockstep_scope as l; print(l.status()['library'])", under=None,
                                      LOCKSTEP_LIBRARY="/nowhere/l.so", **{variable: LIBRARY})  # fmt: skip
            self.assertEqual(out.strip(), LIBRARY)


if __name__ == "__main__":
    unittest.main()
