// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// A clock that others are told of by messages alone, of either direction by itself, and of
// which one waits in a queue, is known to no more than the queue is long, and is no liar.
func TestMessagesThatWaitAccuseNobody(t *testing.T) {
	for _, queue := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second, 5 * time.Second, 30 * time.Second} {
		const n, half = 6, 1000.0
		w := newWorld(3, n)
		s := New(Options{})
		for k := range 20 {
			at := 1e9 + float64(k)*2e9
			for a := 1; a < n; a++ {
				for b := a + 1; b < n; b++ {
					mustAdd(t, s, w.edge(a, b, at, w.noise(half), half))
				}
				waits := [2]int64{1000, 1000}
				waits[a%2] = queue.Nanoseconds()
				for i, p := range [2][2]int{{a, 0}, {0, a}} {
					e := w.edge(p[0], p[1], at, 0, half)
					e.Lower, e.Sigma, e.Source, e.Stamps = model.NoLower, 0, model.EdgeMessage, model.StampApplication
					e.Upper += waits[i]
					e.Offset = e.Upper
					mustAdd(t, s, e)
				}
			}
			sol := s.Solve()
			assert.Empty(t, untrustedOf(sol), "queue of %v", queue)
			assert.Empty(t, sol.Undecided(), "queue of %v", queue)
			_, ok := sol.Model(w.names[0])
			assert.True(t, ok, "queue of %v", queue)
		}
	}
}
