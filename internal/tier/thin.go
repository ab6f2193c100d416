// SPDX-License-Identifier: Apache-2.0

package tier

import "testing"

// Thin picks cases of nested loops for the quick tier: the first, and each Every-th after it.
// They spread over all values of every loop where Every has no divisor in common with the
// numbers of these values. The full tier runs all cases.
type Thin struct {
	Every int
	n     int
}

// Skips counts a case and reports whether the tier leaves it out.
func (s *Thin) Skips(tb testing.TB) bool {
	tb.Helper()
	s.n++
	return !Full(tb) && (s.n-1)%s.Every != 0
}
