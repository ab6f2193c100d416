# SPDX-License-Identifier: Apache-2.0

"""Hashes of parameters of PyTorch."""

import unittest
from unittest import mock

import lockstep_scope
from lockstep_scope import fingerprints

from .helper import Case, needs_torch

MASK = 2**64 - 1


def plain(bits, first):
    """The sum that the docstring has, in Python's integers."""
    odd = 0x9E3779B97F4A7C15
    return sum(x * ((i * odd & MASK) | 1) for i, x in enumerate(bits, first)) & MASK


@needs_torch
class Hashes(unittest.TestCase):
    def setUp(self):
        import torch

        self.torch = torch
        self.told = []
        record = mock.patch.object(fingerprints.LIBRARY, "fingerprint", lambda *a: self.told.append(a))
        record.start()
        self.addCleanup(record.stop)
        torch.manual_seed(1)
        self.parameters = [torch.randn(5, 7), torch.randn(3).bfloat16(), torch.randn(2, 6).t(), torch.arange(4) > 1]

    def hash(self, step=0, **named):
        return lockstep_scope.fingerprint(self.parameters, step, every=1, group="g", replicas=2, **named)

    def test_is_the_sum_that_is_written_down(self):
        p = self.torch.tensor([1.5, -2.25, 0.5])
        bits = [0x3FC00000, 0xC0100000 - 2**32, 0x3F000000]  # IEEE 754, as signed integers
        want = (plain(bits, 0) + 3 * 0x9E3779B97F4A7C15) & MASK
        got = lockstep_scope.fingerprint([p], 0, group="g", replicas=2)
        self.assertEqual(got, f"{want:016x}")
        self.assertEqual(self.told, [(0, want, 0, 3, b"g", 2)])

    def test_every_element_and_bit_tells(self):
        whole = self.hash()
        for p in self.parameters:
            q = p.clone()
            flat = q.reshape(-1)
            for i in range(flat.numel()):
                before = flat[i].clone()
                bits = flat.view({1: self.torch.uint8, 2: self.torch.int16, 4: self.torch.int32}[flat.element_size()])
                bits[i] ^= 1
                changed = [flat.reshape(q.shape) if o is p else o for o in self.parameters]
                got = lockstep_scope.fingerprint(changed, 0, group="g", replicas=2)
                self.assertNotEqual(got, whole)
                flat[i] = before
        self.assertEqual(self.hash(), whole)

    def test_slices_rotate_and_cover_all(self):
        total = sum(p.numel() for p in self.parameters)
        first = [self.hash(step, elements=10) for step in range(6)]
        self.assertEqual([t[2] for t in self.told], [0, 10, 20, 30, 40, 50])
        self.assertEqual({t[3] for t in self.told}, {total})
        self.assertEqual(self.hash(6, elements=10), first[0], "from the beginning")
        self.parameters[0][2, 3] += 1  # element 17
        now = [self.hash(step, elements=10) for step in range(6)]
        self.assertEqual([a != b for a, b in zip(first, now)], [False, True, False, False, False, False])

    def test_in_pieces_it_is_the_same(self):
        whole = self.hash()
        with mock.patch.object(fingerprints, "_CHUNK", 4):
            self.assertEqual(self.hash(), whole)

    def test_complex_and_empty(self):
        p = self.torch.tensor([1 + 2j, 3 - 4j])
        a = lockstep_scope.fingerprint([p], 0, group="g")
        self.assertNotEqual(a, lockstep_scope.fingerprint([p.conj()], 0, group="g"))
        self.assertIsNone(lockstep_scope.fingerprint([], 0, group="g"))
        with self.assertRaisesRegex(TypeError, "got list as number 0; want tensors"):
            lockstep_scope.fingerprint([[1.0]], 0, group="g")

    def test_of_shards_who_shares_them_must_be_said(self):
        for name, value in (
            ("_is_flat_param", True),
            ("tensor_model_parallel", True),
            ("placements", (mock.Mock(is_replicate=lambda: True), mock.Mock(is_replicate=lambda: False))),
        ):
            p = self.torch.zeros(3)
            setattr(p, name, value)
            with self.subTest(name):
                with self.assertRaisesRegex(ValueError, "group: got None with number 1 sharded; want the ranks"):
                    lockstep_scope.fingerprint([self.torch.zeros(2), p], 0)
                self.assertEqual(self.told, [])
                lockstep_scope.fingerprint([p], 0, group="g")
                self.told.clear()
        whole = self.torch.zeros(3)
        whole.placements, whole.tensor_model_parallel = (mock.Mock(is_replicate=lambda: True),), False
        self.assertIsNotNone(lockstep_scope.fingerprint([whole], 0))


@needs_torch
class Recorded(Case):
    def test_replicas(self):
        self.run_ranks("""
            import os, torch, torch.distributed as dist
            import lockstep_scope
            dist.init_process_group("gloo")
            rank = dist.get_rank()
            torch.manual_seed(7)
            model = torch.nn.Linear(40, 30)
            pair = [dist.new_group([0, 1]), dist.new_group([2])][rank // 2]
            lockstep_scope.fingerprint(model.parameters(), 200, group=pair)
            with torch.no_grad(): model.weight[3, 4] += rank == 1
            lockstep_scope.fingerprint(model.parameters(), 250)
            lockstep_scope.fingerprint(model.parameters(), 300)
            dist.destroy_process_group()
        """, 3, under=None)  # fmt: skip
        from . import ring

        told = [r.fingerprints for r in ring.read(self.rings)]
        self.assertEqual([[f["step"] for f in fs] for fs in told], [[200, 300]] * 3)
        self.assertEqual([[f["replicas"] for f in fs] for fs in told], [[2, 3], [2, 3], [1, 3]])
        first, last = [fs[0] for fs in told], [fs[1] for fs in told]
        self.assertEqual((first[0]["group"], first[0]["hash"]), (first[1]["group"], first[1]["hash"]))
        self.assertNotEqual(first[0]["group"], first[2]["group"])
        self.assertEqual({f["group"] for f in last}, {"all"})
        self.assertEqual(last[0]["hash"], last[2]["hash"])
        self.assertNotEqual(last[0]["hash"], last[1]["hash"])
