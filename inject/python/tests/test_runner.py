# SPDX-License-Identifier: Apache-2.0

"""python -m lockstep_scope runs a program as python does."""

import signal
import subprocess
import sys
import unittest

from .helper import PACKAGE, Case


class Runner(Case):
    def both(self, code, *arguments, **env):
        """Runs a program with and without the runner; returns status and streams of each."""
        results = []
        for under in (None, ()):
            process = self.start(code, *arguments, under=under, **env)
            out, err = process.communicate(timeout=60)
            results.append((process.returncode, out, err))
        return results

    def assert_same(self, code, *arguments):
        plain, run = self.both(code, *arguments)
        self.assertEqual(run, plain)
        return plain

    def test_what_a_program_sees(self):
        status, out, _ = self.assert_same("""
            import sys, __main__
            print(__name__, __file__, sys.argv, sys.path[0], __spec__, __package__, __main__.__dict__ is globals())
            class Here: pass
            import pickle
            print(type(pickle.loads(pickle.dumps(Here()))) is Here)
            sys.exit(3)
        """, "--hooks", "x", "-m", "y")  # fmt: skip
        self.assertEqual(status, 3)
        self.assertIn("'--hooks', 'x', '-m', 'y'", out)

    def test_tracebacks(self):
        status, _, err = self.assert_same("def f():\n    return 1 / 0\nf()\n")
        self.assertEqual(status, 1)
        self.assertIn("ZeroDivisionError", err)
        self.assertNotIn("lockstep_scope", err)

    def test_other_ends(self):
        for code, status in (("raise SystemExit('said')", 1), ("raise KeyboardInterrupt", -signal.SIGINT),
                             ("import os; os.kill(os.getpid(), 9)", -9), ("import os; os._exit(5)", 5),
                             ("this is no Python", 1)):  # fmt: skip
            with self.subTest(code=code):
                self.assertEqual(self.assert_same(code)[0], status)

    def test_exit_handlers_and_threads_outlive_the_last_line(self):
        _, out, _ = self.assert_same("""
            import atexit, threading, time
            def late():
                time.sleep(0.2)
                import __main__
                print("thread", __main__.value, value)
            threading.Thread(target=late).start()
            atexit.register(lambda: print("exit", value))
            value = 9
        """)
        self.assertEqual(out, "thread 9 9\nexit 9\n")

    def test_module(self):
        (self.work / "pack").mkdir()
        (self.work / "pack" / "__init__.py").write_text("")
        (self.work / "pack" / "tool.py").write_text(
            "import sys; print(__name__, __package__, __spec__.name, sys.argv, sys.path[0])")  # fmt: skip
        results = []
        for prefix in ([], ["-m", "lockstep_scope", "--hooks", "gc"]):
            done = subprocess.run([sys.executable, *prefix, "-m", "pack.tool", "--every", "2"], cwd=self.work,
                                  env=self.environment(), capture_output=True, text=True, check=True)  # fmt: skip
            results.append(done.stdout)
        self.assertEqual(*results)
        self.assertIn("pack.tool", results[0])

    def test_wrong_use(self):
        for arguments in ([], ["--hooks", "nope", "x.py"], ["--every", "0", "x.py"], ["/nowhere.py"]):
            done = subprocess.run([sys.executable, "-m", "lockstep_scope", *arguments], env=self.environment(),
                                  cwd=PACKAGE, capture_output=True, text=True)  # fmt: skip
            self.assertEqual(done.returncode, 2, arguments)
            self.assertNotIn("Traceback", done.stderr)
            self.assertIn(arguments[0] if arguments else "want a script", done.stderr)

    def test_wrong_variables_do_not_end_a_job(self):
        code = """
            import lockstep_scope
            lockstep_scope.install()
            hooks = lockstep_scope.status()["hooks"]
            print(*[name for name in ("gc", "modules") if hooks[name] != "not asked for"])
        """
        for variable, value, told, hooks in (
            ("HOOKS", "nope", "got 'nope'; want all, none, or some of modules,", "gc modules"),
            ("HOOKS", "all,-nope", "all hooks are used", "gc modules"),
            ("HOOKS", "of a\nnewer,-gc", "it is left out", "modules"),
            ("HOOKS", "gc,module", "got 'module'; want", "gc"),
            ("EVERY", "0", "want a number from 1", "gc modules"),
            ("EVERY", "\u00b2", "want a number from 1", "gc modules"),
            ("EVERY", "9" * 5000, "want a number from 1", "gc modules"),
        ):  # fmt: skip
            with self.subTest(variable=variable, value=value[:9]):
                name = "LOCKSTEP_SCOPE_" + variable
                out, err = self.run_program(code, **{name: value})
                self.assertEqual(out.split(), hooks.split())
                self.assertIn(told, err)
                self.assertTrue(err.startswith(f"lockstep_scope: {name}={value.split()[0][:80]}"), err)
                self.assertEqual(err.count("\n"), 1)
                out, err = self.run_program(code, LOCKSTEP_LIBRARY=None, **{name: value})
                self.assertEqual((out.split(), err), (hooks.split(), ""))

    def test_options_come_before_variables(self):
        self.run_program("""
            from lockstep_scope import scope, step
            for n in range(4):
                step(n)
                with scope("x"): pass
        """, under=("--every", "2", "--hooks", "none"), LOCKSTEP_SCOPE_EVERY="3")
        self.assertEqual([s["step"] for s in self.ring().scopes], [0, 2])

    def test_hooks_wait_for_their_module(self):
        (self.programs / "torch.py").write_text("raise ImportError('not whole')")
        out, _ = self.run_program("""
            import sys
            assert "torch" not in sys.modules
            import lockstep_scope
            print(lockstep_scope.status()["hooks"]["modules"])
            try:
                import torch
            except ImportError as error:
                print(error)
            print(lockstep_scope.status()["hooks"]["gc"])
        """)
        self.assertEqual(out, "waits for torch\nnot whole\non\n")

    def test_a_torch_that_lacks_everything(self):
        # Its hooks are off and say so; the program goes on.
        (self.programs / "torch.py").write_text("value = 6")
        out, _ = self.run_program("""
            import torch, lockstep_scope
            print(torch.value, lockstep_scope.status()["hooks"]["modules"])
        """)
        self.assertTrue(out.startswith("6 off: "), out)

    def test_interrupted_program_ends_at_once(self):
        process = self.start("""
            import time, lockstep_scope
            with lockstep_scope.scope("work"):
                print("ready", flush=True)
                time.sleep(60)
        """)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
