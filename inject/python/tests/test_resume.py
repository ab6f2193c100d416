# SPDX-License-Identifier: Apache-2.0

"""What ranks say of what they loaded."""

import random
import sys
import types
import unittest
from unittest import mock

import lockstep_scope
from lockstep_scope import rng_digest

from .helper import Case


def tell(*arguments, **named):
    lockstep_scope.resumed(*arguments, **named)


class Resume(Case):
    def test_recorded(self):
        self.run_program("""
            from lockstep_scope import resumed
            resumed(1200, optimizer_step=1199, data_cursor="shard-7:48812", rng_digest="00" * 15 + "ff", replica=3)
            resumed(0)
            resumed(2**63 - 1, 0, 0, bytes(range(16)), "x" * 32)
        """, under=None)  # fmt: skip
        r = self.ring()
        self.assertEqual(r.resumes, [
            {"step": 1200, "optimizer": 1199, "rng": "00" * 15 + "ff", "cursor": "shard-7:48812",
             "replica": "3", "number": 1},
            {"step": 0, "optimizer": None, "rng": None, "cursor": None, "replica": None, "number": 2},
            {"step": 2**63 - 1, "optimizer": 0, "rng": bytes(range(16)).hex(), "cursor": "0",
             "replica": "x" * 32, "number": 3},
        ])  # fmt: skip
        self.assertEqual(r.drops[26], 0)

    def test_wrong_values_raise_and_record_nothing(self):
        self.run_program("""
            from lockstep_scope import resumed
            for arguments in ((float("nan"),), (-1,), (1, 2, "x" * 33), (1, 2, "a", "zz")):
                try: resumed(*arguments)
                except (TypeError, ValueError): continue
                raise AssertionError(arguments)
            resumed(5)
        """, under=None)  # fmt: skip
        self.assertEqual([r["step"] for r in self.ring().resumes], [5])

    def test_without_the_library_nothing_happens(self):
        self.run_program("""
            import lockstep_scope
            assert not lockstep_scope.status()["library"]
            lockstep_scope.resumed(5, data_cursor=1)
        """, under=None, LOCKSTEP_LIBRARY=None)  # fmt: skip


class Values(unittest.TestCase):
    def test_what_is_wrong_is_said(self):
        for error, text, arguments, named in (
            (TypeError, "step: got nan; want an integer", (float("nan"),), {}),
            (TypeError, "step: got True; want an integer", (True,), {}),
            (TypeError, "step: got '7'; want an integer", ("7",), {}),
            (ValueError, "step: got -1; want 0 to", (-1,), {}),
            (ValueError, "step: got 9223372036854775808; want 0 to", (2**63,), {}),
            (ValueError, "step: got an integer of 40001 bits", (2**40000,), {}),
            (TypeError, "optimizer_step: got 1.0; want an integer", (1, 1.0), {}),
            (ValueError, "optimizer_step: got -3", (1, -3), {}),
            (ValueError, "data_cursor: got 33 bytes; want 1 to 32", (1,), {"data_cursor": "é" * 16 + "x"}),
            (ValueError, "data_cursor: got 0 bytes", (1,), {"data_cursor": ""}),
            (ValueError, "data_cursor: got -1; want 0 to", (1,), {"data_cursor": -1}),
            (TypeError, "data_cursor: got inf; want an integer", (1,), {"data_cursor": float("inf")}),
            (ValueError, r"data_cursor: got 'a\\x00b'; want text without control", (1,), {"data_cursor": "a\0b"}),
            (ValueError, r"replica: got '\\ud800'; want text", (1,), {"replica": "\ud800"}),
            (ValueError, "rng_digest: got 'abc'; want 32 hexadecimal", (1,), {"rng_digest": "abc"}),
            (ValueError, "rng_digest: got b'abc'; want 32 hexadecimal", (1,), {"rng_digest": b"abc"}),
            (TypeError, "rng_digest: got int; want text or bytes", (1,), {"rng_digest": 7}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, "tell resume: " + text):
                tell(*arguments, **named)


class Array(list):
    def tolist(self):
        return list(self)

    def tobytes(self):
        return bytes(self)


class Digest(unittest.TestCase):
    def setUp(self):
        state = random.getstate()
        self.addCleanup(random.setstate, state)
        names = ("numpy.random", "torch", "torch.cuda")
        self.modules = {k: v for k, v in sys.modules.items() if k not in names}
        patch = mock.patch.dict(sys.modules, self.modules, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def test_of_python(self):
        random.seed(7)
        first = rng_digest()
        self.assertRegex(first, "^[0-9a-f]{32}$")
        self.assertEqual(rng_digest(), first, "no state was changed")
        random.random()
        self.assertNotEqual(rng_digest(), first)
        random.seed(7)
        self.assertEqual(rng_digest(), first)

    def test_of_others_where_they_are_imported(self):
        random.seed(7)
        seen = [rng_digest()]
        numpy = types.SimpleNamespace(get_state=lambda: ("MT19937", Array([1, 2]), 3, 0, 0.0))
        torch = types.SimpleNamespace(get_rng_state=lambda: Array([1, 2]))
        cuda = types.SimpleNamespace(is_initialized=lambda: True, get_rng_state=lambda: Array([1, 2]))
        for name, module in (("numpy.random", numpy), ("torch", torch), ("torch.cuda", cuda)):
            sys.modules[name] = module
            seen.append(rng_digest())
        numpy.get_state = lambda: ("MT19937", Array([1, 2]), 4, 0, 0.0)
        seen.append(rng_digest())
        torch.get_rng_state = lambda: Array([1, 3])
        seen.append(rng_digest())
        self.assertEqual(len(set(seen)), len(seen), seen)
        before = seen[-1]
        cuda.get_rng_state = lambda: Array([9])
        self.assertNotEqual(rng_digest(), before)
        cuda.is_initialized = lambda: False
        after = rng_digest()
        del sys.modules["torch.cuda"]
        self.assertEqual(rng_digest(), after, "CUDA that is not begun is not begun, and says nothing")

    def test_what_cannot_be_read_is_not_half_told(self):
        def broken():
            raise RuntimeError("no such state")

        sys.modules["torch"] = types.SimpleNamespace(get_rng_state=broken)
        self.assertIsNone(rng_digest())

    def test_nothing_is_imported(self):
        with mock.patch.dict(sys.modules):
            for name in ("random", "numpy.random", "torch", "torch.cuda"):
                sys.modules.pop(name, None)
            self.assertIsNone(rng_digest())
            self.assertNotIn("random", sys.modules)
