// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/netstamp"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// packets is a world of agents: hosts exchange packets and read both of their clocks, and
// what they tell of that is what the estimators make of it. It is told as agents do, and
// solved every two seconds, a second later.
type packets struct {
	*world
	estimators map[[2]string]*pair.Estimator
	both       map[[2]string]*netstamp.Pairs
	// every is the time between two exchanges of a pair.
	every int64
}

func exchange(t *testing.T, seed uint64, hosts int, every int64) *packets {
	t.Helper()
	w := begin(t, seed, hosts, every)
	for range 30 {
		w.step()
	}
	return w
}

func begin(t *testing.T, seed uint64, hosts int, every int64) *packets {
	t.Helper()
	w := &packets{world: cluster(t, seed, hosts), estimators: map[[2]string]*pair.Estimator{}, both: map[[2]string]*netstamp.Pairs{}, every: every}
	for _, p := range w.pairs {
		if w.source[p] != model.EdgePair {
			w.estimators[p] = pair.New(pair.Config{})
			continue
		}
		w.both[p] = netstamp.NewPairs(&host{w: w.world, pair: p})
		w.both[p].PromptEvery(500e6)
	}
	return w
}

// host reads both clocks of one. It is read for the first time some ms before the world
// begins.
type host struct {
	w      *world
	pair   [2]string
	before int64
}

func (h *host) Pair() netstamp.Pair {
	at := h.w.now
	if at == 0 {
		h.before += 5e6
		at = h.before - sec
	}
	return netstamp.Pair{Raw: h.w.clocks[h.pair[0]](at), Realtime: h.w.clocks[h.pair[1]](at), Width: 40 + h.w.rng.Int64N(40)}
}

func (h *host) Kernel(unix int64) int64 { return unix }

func (w *packets) delay() int64 { return 5_000 + int64(3_000*math.Exp(1.337*w.rng.NormFloat64())) }

// step lets half a second pass.
func (w *packets) step() {
	w.t.Helper()
	from := w.now
	for range 25 {
		w.now += half / 25
		for _, p := range w.pairs {
			if b := w.both[p]; b != nil {
				b.Read()
			}
		}
	}
	for _, p := range w.pairs {
		if b := w.both[p]; b != nil {
			w.add(b.Prompt(p[0], p[1]))
			w.add(b.Edges(p[0], p[1]))
			continue
		}
		w.probe(p, from)
		if w.now%windowN == 0 {
			for _, e := range w.estimators[p].Close(w.clocks[p[0]](w.now)) {
				w.add([]model.ClockEdge{e.Edge(p[0], p[1], model.EdgeProbe, model.StampKernel)})
			}
		}
	}
	if w.now%windowN == sec {
		w.advance()
	}
}

// probe lets a pair exchange packets from a moment until now. Whose clock goes back begins
// anew.
func (w *packets) probe(p [2]string, from int64) {
	src, dst := w.clocks[p[0]], w.clocks[p[1]]
	last := src(from)
	for at := from; at < w.now; at += w.every {
		sent := at + w.rng.Int64N(w.every/2)
		there := sent + w.delay()
		back := there + 20_000
		home := back + w.delay()
		if src(home) < last {
			w.estimators[p] = pair.New(pair.Config{})
		}
		last = src(home)
		if src(sent) > src(home) {
			continue
		}
		w.estimators[p].Upper(src(sent), dst(there), 0)
		w.estimators[p].Lower(src(home), dst(back), 0)
	}
}

// TestRawIsSet, packet by packet: pairs see the step at different times, the host itself
// not before its readings are new again, and all to less than a millisecond at first.
func TestRawIsSetBetweenPackets(t *testing.T) {
	thin := tier.Thin{Every: 5}
	for _, c := range []struct {
		seed        uint64
		hosts       int
		every, late int64
	}{
		{0, 3, sec / 20, 200_000_001},
		{1, 4, sec / 20, 200_000_001},
		{2, 5, sec / 10, 200_000_001},
		{2, 3, sec, 200_000_001},
		{4, 4, sec, 1_200_000_001},
		{1, 8, sec, 1_200_000_001},
		{3, 4, sec, 2_100_000_001},
		{40, 4, sec / 2, 2_100_000_001},
		{55, 4, sec, 1_800_000_001},
	} {
		for _, by := range []int64{-sec / 5, -sec, 5 * sec, -3 * sec, -5 * sec, -7 * sec, -60 * sec, -1000 * sec} {
			for host := range 2 {
				if thin.Skips(t) {
					continue
				}
				t.Run(fmt.Sprintf("%d/%d/%v/%v/%d", c.seed, c.hosts, time.Duration(c.every), time.Duration(by), host), func(t *testing.T) {
					w := exchange(t, c.seed, c.hosts, c.every)
					w.step()
					at := w.now + c.late
					w.set(raw(host), at, by)
					for range 60 {
						w.step()
						w.agree(c.hosts, at)
					}
					assert.Less(t, w.place(realtime(host), w.now).Bound, int64(1_000_000))
					w.only(t, model.ClassStep, raw(host))
				})
			}
		}
	}
}

// Two hosts are restored within a second, and their real-time clocks, and all others, stay
// where they are.
func TestTwoRawsAreSetBetweenPackets(t *testing.T) {
	thin := tier.Thin{Every: 5}
	for _, c := range []struct {
		seed      uint64
		hosts     int
		late, gap int64
	}{
		{101, 5, 900_000_001, 7_000_001},
		{102, 5, 1_500_000_001, 900_000_001},
		{102, 8, 1_500_000_001, 900_000_001},
	} {
		for _, by := range []int64{4 * sec, -4 * sec} {
			for _, share := range []float64{0.6, 0.95, -0.7} {
				if thin.Skips(t) {
					continue
				}
				t.Run(fmt.Sprintf("%d/%d/%v/%v", c.seed, c.hosts, time.Duration(by), share), func(t *testing.T) {
					w := exchange(t, c.seed, c.hosts, sec/10)
					w.step()
					at := w.now + c.late
					w.set(raw(0), at, by)
					w.set(raw(1), at+c.gap, int64(share*float64(by)))
					for range 60 {
						w.step()
						for host := 1; host < c.hosts; host++ {
							for age := int64(0); age < 2*sec; age += sec / 4 {
								require.True(t, w.together(realtime(0), realtime(host), w.now-age), "host %d, %v after", host, time.Duration(w.now-age-at))
							}
						}
					}
					for _, f := range w.findings {
						assert.Contains(t, []string{raw(0), raw(1)}, f.Clock, "%s: %s", f.Class, f.Evidence)
					}
				})
			}
		}
	}
}

func TestAReferenceIsSetByWhatAllAllow(t *testing.T) {
	all := []gone{{jump: 900, slack: 50, raw: true}, {jump: 1000, slack: 400, raw: true}, {jump: 1010, slack: 400, raw: true}, {jump: 2, slack: 5}}
	by := leap(all)
	assert.Equal(t, int64(900), by.jump)
	assert.Equal(t, int64(50), by.slack)
	all[0] = gone{jump: 5000, slack: 50, raw: true} // that of another step
	by = leap(all)
	assert.Equal(t, int64(1005), by.jump)
	assert.Equal(t, int64(395), by.slack)
	assert.Zero(t, leap(all[:0]))
}
