# SPDX-License-Identifier: Apache-2.0

"""What fingerprint() asks of its arguments."""

import unittest

import lockstep_scope


class Arguments(unittest.TestCase):
    def test_what_is_wrong_is_said(self):
        for error, text, arguments, named in (
            (TypeError, "step: got nan; want an integer", ([], float("nan")), {}),
            (ValueError, "step: got -1; want 0 to", ([], -1), {}),
            (ValueError, "every: got 0; want 1 to", ([], 1), {"every": 0}),
            (ValueError, "elements: got 0; want 1 to", ([], 1), {"elements": 0}),
            (ValueError, "replicas: got 0; want 1 to", ([], 0), {"group": "a", "replicas": 0}),
            (ValueError, "replicas: got 4294967296; want 1 to", ([], 0), {"group": "a", "replicas": 2**32}),
            (ValueError, "group: got 33 bytes; want 1 to 32", ([], 0), {"group": "x" * 33}),
            (TypeError, "group: got object; want a ProcessGroup", ([], 0), {"group": object()}),
        ):
            with self.subTest(text), self.assertRaisesRegex(error, "fingerprint: " + text):
                lockstep_scope.fingerprint(*arguments, **named)

    def test_nothing_is_looked_at_in_other_steps(self):
        def parameters():
            raise AssertionError("they are looked at")
            yield

        self.assertIsNone(lockstep_scope.fingerprint(parameters(), 101, every=100))
