# SPDX-License-Identifier: Apache-2.0

"""What a rank does while somebody debugs it."""

import subprocess
import unittest

from .helper import Case

BREAKS = """
    from lockstep_scope import hooks, scope
    with scope("forward"):
        breakpoint()
        print("went on")
    hooks.uninstall()
    import pdb
    assert not hasattr(pdb.Pdb.interaction, "__wrapped__")
"""


class Debugger(Case):
    def test_prompt_is_a_scope(self):
        process = self.start(BREAKS, under=("--hooks", "all,-gc"), stdin=subprocess.PIPE, PYTHONUNBUFFERED="1")
        # The prompt is there when it has said where it stops: at the line after, in the program.
        said = ""
        while "-> print" not in said:
            line = process.stdout.readline()
            self.assertTrue(line, said)
            said += line
        process.stdin.write("p 6 * 7\ncontinue\n")
        process.stdin.flush()
        out, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("42", out)
        self.assertIn("went on", out)
        self.assertIn("program.py", said)
        self.assertNotIn("debuggers.py", said)
        by_name = {s["name"]: s for s in self.ring().scopes}
        self.assertEqual(sorted(by_name), ["debugger", "forward"])
        held, outer = by_name["debugger"], by_name["forward"]
        self.assertTrue(outer["begin"] <= held["begin"] <= held["end"] <= outer["end"])
        self.assertEqual(held["depth"], 1)

    def test_not_asked_for(self):
        process = self.start(BREAKS, under=("--hooks", "all,-debugger,-gc"), stdin=subprocess.PIPE)
        process.stdin.write("continue\n")
        process.stdin.flush()
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(self.ring().names(), ["forward"])


if __name__ == "__main__":
    unittest.main()
