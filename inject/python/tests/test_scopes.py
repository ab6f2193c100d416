"""Scopes, steps and links, without a framework."""

import unittest

from . import ring
from .helper import Case

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
        left_out = int(out)
        self.assertGreaterEqual(left_out, 89)  # 601 names, 512 kept
        self.assertEqual(len(self.ring().scopes), 601 - left_out)

    def test_wrong_use_raises(self):
        self.run_program("""
            from lockstep_scope import every, install, link, scope
            for call, kind in ((lambda: scope(3), TypeError), (lambda: scope("x", "lunch"), ValueError),
                               (lambda: scope("x", 7), ValueError), (lambda: every(0), ValueError),
                               (lambda: link("00-zz-1-01"), ValueError), (lambda: install("modules,nope"), ValueError)):
                try:
                    call()
                except kind:
                    continue
                raise SystemExit("no " + kind.__name__)
        """, under=None)  # fmt: skip

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
        """, under=None)  # fmt: skip
        r = self.ring()
        self.assertEqual(r.links, [
            {"step": 4, "trace": "0af7651916cd43dd8448eb211c80319c", "span": "b7ad6b7169203331"},
            {"step": 4, "trace": "0" * 31 + "1", "span": "0" * 15 + "2"},
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
        self.assertIn(str(other), out)
        self.assertIn("no library", out)
        self.assertEqual(list(self.rings.iterdir()), [])

    def test_a_file_that_is_no_library(self):
        broken = self.work / "broken.so"
        broken.write_bytes(b"lockstep_scope_begin\0")
        out, _ = self.run_program(
            "import lockstep_scope as l\nwith l.scope('x'): print(l.status()['problem'])",
            under=None, LOCKSTEP_LIBRARY=str(broken),
        )  # fmt: skip
        self.assertIn(f"load {broken}", out)

    def test_found_by_other_variables(self):
        from .helper import LIBRARY

        for variable in ("NCCL_PROFILER_PLUGIN", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
            out, _ = self.run_program("import lockstep_scope as l; print(l.status()['library'])", under=None,
                                      LOCKSTEP_LIBRARY="/nowhere/l.so", **{variable: LIBRARY})  # fmt: skip
            self.assertEqual(out.strip(), LIBRARY)


if __name__ == "__main__":
    unittest.main()
