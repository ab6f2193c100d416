# SPDX-License-Identifier: Apache-2.0

"""The library is paused once for all profiles that record, and resumed after the last."""

import sys
import types
import unittest
from unittest import mock

from lockstep_scope.hooks import profiler


def fake_torch():
    """Returns torch.autograd.profiler.profile as far as the hook reads it, and its modules."""

    class profile:
        def __init__(self, enabled=True, broken=False):
            self.enabled, self.broken = enabled, broken

        def _prepare_trace(self):
            if self.broken:
                raise RuntimeError("no profiler")

        def __enter__(self):
            if self.enabled:
                self._prepare_trace()
            return self

        def __exit__(self, *error):
            return None

    names = ("torch", "torch.autograd", "torch.autograd.profiler")
    modules = {name: types.ModuleType(name) for name in names}
    modules["torch.autograd.profiler"].profile = profile
    return profile, modules


class ProfilerTest(unittest.TestCase):
    def setUp(self):
        library = mock.patch.object(profiler, "LIBRARY")
        self.library = library.start()
        self.addCleanup(library.stop)
        self.profile, modules = fake_torch()
        loaded = mock.patch.dict(sys.modules, modules)
        loaded.start()
        self.addCleanup(loaded.stop)
        self.hook = self.started()

    def started(self):
        hook = profiler.Profiler()
        hook.start()
        self.assertEqual(hook.missing(), [])
        self.addCleanup(hook.stop)
        return hook

    def calls(self):
        return [call[0] for call in self.library.method_calls]

    def test_one_profile(self):
        with self.profile():
            self.assertEqual(self.calls(), ["cupti_pause"])
        self.assertEqual(self.calls(), ["cupti_pause", "cupti_resume"])

    def test_profile_that_is_not_enabled_ends_nothing(self):
        with self.profile():
            with self.profile(enabled=False):
                pass
            self.assertEqual(self.calls(), ["cupti_pause"])
        self.assertEqual(self.calls(), ["cupti_pause", "cupti_resume"])

    def test_preparation_that_fails_leaves_no_pause(self):
        with self.assertRaises(RuntimeError):
            with self.profile(broken=True):
                pass
        self.assertEqual(self.calls(), ["cupti_pause", "cupti_resume"])

    def test_hook_stopped_within_a_profile_pauses_once(self):
        first = self.profile().__enter__()
        self.hook.stop()
        first.__exit__(None, None, None)
        self.assertEqual(self.calls(), ["cupti_pause"])
        self.started()
        with self.profile():
            pass
        self.assertEqual(self.calls(), ["cupti_pause", "cupti_resume"])


if __name__ == "__main__":
    unittest.main()
