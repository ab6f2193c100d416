// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
)

// A machine is restored, and its raw clock goes back with it. It goes on to measure and to
// answer at once, nothing of what it says rests on readings of before, and its neighbours
// measure it as before.
func TestANodeWhoseRawClockGoesBack(t *testing.T) {
	for _, by := range []time.Duration{5 * time.Second, 1000 * time.Second} {
		t.Run(by.String(), func(t *testing.T) {
			inMemory(t, func(t *testing.T, w *world) {
				_, nodes := w.mesh3(t, nil)
				clock := func(i int) string { return fmt.Sprintf("host:%c/1/raw", 'a'+i) }
				both := func(i int) func(o Outcome) bool {
					return func(o Outcome) bool { return estimated(o, clock((i+1)%3), clock((i+2)%3)) }
				}
				for i, n := range nodes {
					n.some(t, "estimates of both others", both(i))
				}
				set := w.Now()
				nodes[0].clock.ChangeRaw(netstamp.Change{At: set, Step: -by.Nanoseconds()})
				since := []int{len(nodes[0].outcomes()), len(nodes[1].outcomes()), len(nodes[2].outcomes())}
				require.Eventually(t, func() bool {
					after := nodes[0].outcomes()[since[0]:]
					return len(after) > 1 && both(0)(after[len(after)-1])
				}, 30*time.Second, 20*time.Millisecond, "estimates of both others")
				for i, n := range nodes[1:] {
					require.Eventually(t, func() bool {
						return slices.ContainsFunc(n.outcomes()[since[i+1]:], func(o Outcome) bool {
							return slices.ContainsFunc(o.Edges, func(e model.ClockEdge) bool {
								at, ok := n.clock.TrueOfRaw(e.At)
								truth := netstamp.Offset(n.clock, nodes[0].clock, at)
								return e.Dst == clock(0) && e.Sigma > 0 && ok && at > set && e.Lower <= truth && truth <= e.Upper
							})
						})
					}, 30*time.Second, 20*time.Millisecond, "an estimate by %s of the readings of since", n.cfg.NodeID)
				}
				for _, o := range nodes[0].outcomes()[since[0]+1:] { // the first may have ended before
					for _, e := range o.Edges {
						var peer *netstamp.Skewed
						switch e.Dst {
						case clock(1):
							peer = nodes[1].clock
						case clock(2):
							peer = nodes[2].clock
						default:
							continue
						}
						at, ok := nodes[0].clock.TrueOfRaw(e.At)
						require.True(t, ok)
						require.GreaterOrEqual(t, at, set, "no edge is of before")
						truth := netstamp.Offset(nodes[0].clock, peer, at)
						assert.LessOrEqual(t, e.Lower, truth)
						assert.GreaterOrEqual(t, e.Upper, truth)
						assert.Zero(t, e.Contradicted)
					}
				}
				c := nodes[0].outcomes()[len(nodes[0].outcomes())-1].Counters
				assert.Zero(t, c["reflector.future"])
				assert.Zero(t, c["reflector.limited"])
			})
		})
	}
}
