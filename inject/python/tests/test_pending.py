# SPDX-License-Identifier: Apache-2.0

"""Ends of operations that go on after the call."""

import time
import unittest
from unittest import mock

from lockstep_scope.hooks import pending

PATIENCE_S = 30


class Future:
    def __init__(self):
        self.over = False

    def done(self):
        return self.over


class PendingTest(unittest.TestCase):
    def setUp(self):
        library = mock.patch.object(pending, "LIBRARY")
        self.library = library.start()
        self.addCleanup(library.stop)
        self.pending = pending.Pending()
        self.addCleanup(self.pending.stop)

    def ended(self):
        return [call.args[0] for call in self.library.collective_end.call_args_list]

    def eventually(self, what):
        until = time.monotonic() + PATIENCE_S
        while not what():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.001)

    def test_what_goes_on_hides_nothing(self):
        for handle in range(1, 101):  # of a group that hangs
            self.pending.add(Future(), handle)
        quick = Future()
        self.pending.add(quick, 101)
        quick.over = True
        self.eventually(lambda: self.ended() == [101])

    def test_too_many_end_as_they_begin(self):
        for handle in range(1, pending.MAX_PENDING + 2):
            self.pending.add(Future(), handle)
        self.assertEqual(self.ended(), [pending.MAX_PENDING + 1])

    def test_what_is_done_is_let_go_of(self):
        bucket = Future()
        self.pending.called_back(bucket)
        self.assertEqual(len(self.pending._callbacks), 1)
        bucket.over = True
        self.eventually(lambda: not self.pending._callbacks)


if __name__ == "__main__":
    unittest.main()
