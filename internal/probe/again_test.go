// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock/graph"
	"github.com/lockstep-otel/lockstep/internal/stamp"
)

// A node that tells old readings again is marked, whatever their age, and nobody else: an
// answer cannot leave at the reading of its request's arrival, nor at that of the answer
// before.
func TestReadingsThatAreToldAgainMarkTheirHost(t *testing.T) {
	answers := []int64{}
	for name, replay := range map[string]func(i int, x *stamp.Exchange){
		"its request's arrival": func(_ int, x *stamp.Exchange) { x.T3.Raw = x.T2.Raw },
		"the answer before": func(i int, x *stamp.Exchange) {
			if answers = append(answers, x.T3.Raw); i%2 == 1 {
				x.T3.Raw = answers[len(answers)-2]
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			solver := graph.New(graph.Options{})
			for self, others := range map[string][]string{"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b"}} {
				cfg := Config{HostID: self, BootID: "1", Window: 2 * time.Second}.withDefaults()
				c := newClocks(&cfg, &counts{})
				for _, e := range judgedAs(c, 0, replay, "d") {
					require.NoError(t, solver.Add(e))
				}
				assert.GreaterOrEqual(t, c.count.crossed.Load(), int64(5))
				for _, e := range judged(c, 1, 0, others...) {
					e.At = 1_000_000_000_000
					require.NoError(t, solver.Add(e))
				}
			}
			solution := solver.Solve()
			for _, m := range solution.Models() {
				assert.Equal(t, m.Clock == "host:d/1/raw", m.Untrusted, m.Clock)
			}
			_, ok := solution.Model("host:d/1/raw")
			assert.True(t, ok)
		})
	}
}

// A clock that is coarser than the time between two packets shows one reading for both, and
// a reflector that is none of ours may tell one time for all that it tells.
func TestOneReadingOfTwoArrivalsIsNoReplay(t *testing.T) {
	const ahead = 1_000_000_000_000
	h := &heard{}
	a, b := stampedTrip(0, ahead+1000, ahead+3000, 4000), stampedTrip(500, ahead+1000, ahead+3500, 4500)
	assert.False(t, h.again(&a))
	assert.False(t, h.again(&b))
	same := stampedTrip(0, ahead+1000, ahead+1000, 4000)
	assert.True(t, h.again(&same))
	assert.False(t, (&heard{foreign: true}).again(&same))
}

// The clock that a program reads may count in ms, and show one reading for all of an
// exchange and for the next.
func TestOneReadingOfAProgramIsNoReplay(t *testing.T) {
	const ahead = 1_000_000_000_000
	h := &heard{}
	for range 3 {
		coarse := stampedTrip(0, ahead+1000, ahead+1000, 4000)
		coarse.out.kind, coarse.back.kind = stamp.KindUser, stamp.KindUser
		assert.False(t, h.again(&coarse))
	}
	fine := stampedTrip(0, ahead+1000, ahead+1000, 4000)
	assert.True(t, h.again(&fine))
}

// There may be one exchange a window.
func TestTheAnswerBeforeMayBeOfTheWindowBefore(t *testing.T) {
	s := &session{count: &counts{}, byClock: map[string]*heard{}, sender: mustSender()}
	crossed := func(window int64, clock string) int64 {
		at := func(raw int64) stamp.Stamp {
			return stamp.Stamp{Raw: window*2_000_000_000 + raw, Kind: stamp.KindKernel, Width: 10}
		}
		before := s.count.crossed.Load()
		x := stamp.Exchange{Seq: uint32(window), PeerClock: clock, T1: at(0), T2: at(1000), T3: at(2000), T4: at(3000)}
		x.T3.Raw = 2000
		s.done = append(s.done[:0], x)
		s.keep()
		s.take(at(2_000_000_000).Raw)
		return s.count.crossed.Load() - before
	}
	assert.Zero(t, crossed(1, "host:d/1/raw"))
	assert.Equal(t, int64(1), crossed(2, "host:d/1/raw"))
	assert.Zero(t, crossed(3, "host:d/2/raw"), "another clock")
}
