// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// TestTimeDoesNotTurnBackForWhatIsLate: as many edges come 20 s late as at once, and cover
// one time better. Until nothing else comes for long, the instant goes on with the others.
func TestTimeDoesNotTurnBackForWhatIsLate(t *testing.T) {
	const second = int64(1e9)
	s := New(Options{})
	add := func(src, dst string, at int64) {
		require.NoError(t, s.Add(model.ClockEdge{
			Src: src, Dst: dst, At: at, Span: 2 * second, Lower: -1000, Upper: 1000, Sigma: 100, Source: model.EdgeCall, Stamps: model.StampApplication,
		}))
	}
	instant := int64(0)
	for at := 100 * second; at < 130*second; at += second {
		add("a", "b", at)
		add("a", "c", at+second/2)
		if at >= 120*second {
			for _, o := range []string{"a", "b", "c"} {
				add("d", o, at-20*second)
			}
		}
		next := s.Solve().Components()[0].At
		assert.Greater(t, next, instant)
		instant = next
	}
	back := instant - 20*second
	for range patience + 2 {
		back += second
		for _, o := range []string{"a", "b", "c"} {
			add("d", o, back)
		}
		instant = s.Solve().Components()[0].At
	}
	assert.InDelta(t, back, instant, float64(second))
}
