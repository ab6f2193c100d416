// SPDX-License-Identifier: Apache-2.0

package tier

import (
	"os"
	"strconv"
	"testing"
)

// NOr returns the number that the environment variable name holds, and the number of N
// where it is unset or empty. It fails the test where the variable holds no whole number
// of at least 1.
func NOr(tb testing.TB, name string, quick, full int) int {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return N(tb, quick, full)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		tb.Fatalf("read %s: got %q; want a whole number of at least 1", name, text)
	}
	return n
}
