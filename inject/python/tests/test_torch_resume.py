# SPDX-License-Identifier: Apache-2.0

"""The digest of PyTorch's generator."""

import unittest

from lockstep_scope import rng_digest

from .helper import needs_torch


@needs_torch
class Torch(unittest.TestCase):
    def test_its_generator_is_seen(self):
        import torch

        torch.manual_seed(3)
        first = rng_digest()
        self.assertEqual(rng_digest(), first)
        torch.rand(1)
        self.assertNotEqual(rng_digest(), first)
        torch.manual_seed(3)
        self.assertEqual(rng_digest(), first)
