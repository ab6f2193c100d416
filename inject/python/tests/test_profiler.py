# SPDX-License-Identifier: Apache-2.0

"""The library is paused once for all profiles that record, and resumed after the last."""

import gc
import sys
import threading
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
            self.prepared()

        def prepared(self):
            """Called while a trace is recorded."""

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

    def test_profile_that_is_dropped_ends_its_pause(self):
        kept = self.profile().__enter__()
        dropped = self.profile().__enter__()
        del dropped
        gc.collect()
        self.assertEqual(self.calls(), ["cupti_pause"])
        del kept
        gc.collect()
        self.assertEqual(self.calls(), ["cupti_pause", "cupti_resume"])

    def test_profile_that_is_dropped_after_its_end_ends_nothing_else(self):
        ended = self.profile()
        with ended:
            pass
        with self.profile():
            del ended
            gc.collect()
            self.assertEqual(self.calls(), ["cupti_pause", "cupti_resume", "cupti_pause"])

    def test_profile_of_another_thread_waits_until_the_pause_is_in_force(self):
        pausing, prepared = threading.Event(), threading.Event()
        in_force, seen = [], []

        def pause():
            pausing.set()
            prepared.wait(0.2)  # for a profile that does not wait
            in_force.append(True)

        def second():
            pausing.wait()
            with self.profile():
                pass

        self.library.cupti_pause.side_effect = pause
        self.profile.prepared = lambda _: (seen.append(bool(in_force)), prepared.set())
        thread = threading.Thread(target=second)
        thread.start()
        with self.profile():
            pass
        thread.join()
        self.assertEqual(seen, [True, True])

    def test_threads_that_profile_by_turns_record_only_while_paused(self):
        pauses, unpaused = [0], []

        def count(by):
            pauses[0] += by

        self.library.cupti_pause = lambda: count(1)
        self.library.cupti_resume = lambda: count(-1)
        self.profile.prepared = lambda _: None if pauses[0] == 1 else unpaused.append(pauses[0])

        def record():
            for _ in range(2000):
                with self.profile():
                    pass

        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=record) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(unpaused, [])
        self.assertEqual(pauses, [0])


if __name__ == "__main__":
    unittest.main()
