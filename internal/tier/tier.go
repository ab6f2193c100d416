// SPDX-License-Identifier: Apache-2.0

// Package tier sizes tests. The quick tier keeps layouts and assertions and cuts repetitions;
// where a test combines several lists of values, it keeps each value and thins the
// combinations (Thin). The full tier runs all that a nightly run can afford.
package tier

import (
	"os"
	"testing"
)

// Env selects the tier: unset, empty or "quick" for the quick tier, "full" for the full tier.
const Env = "LOCKSTEP_TESTS"

// N returns the number of seeds, jobs or cases that a test runs: quick or full.
//
// A claim "never" that holds over n independent trials excludes, with 95 % confidence,
// a failure rate above 3/n (Hanley and Lippman-Hand, JAMA 1983).
func N(tb testing.TB, quick, full int) int {
	tb.Helper()
	if Full(tb) {
		return full
	}
	return quick
}

// Full reports whether the full tier was asked for, and fails the test where Env has
// a value that is neither tier.
func Full(tb testing.TB) bool {
	tb.Helper()
	switch value := os.Getenv(Env); value {
	case "", "quick":
		return false
	case "full":
		return true
	default:
		tb.Fatalf("read %s: got %q; want quick or full", Env, value)
		return false
	}
}
