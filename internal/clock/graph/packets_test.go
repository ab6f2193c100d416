// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

const second = int64(1e9)

// bend is a change of a clock in true time: its rate from then on, and a step.
type bend struct {
	at   int64
	rate float64
	step int64
}

// bent is a clock whose changes are known.
type bent struct {
	start int64
	bends []bend // by time
}

func (b *bent) read(t int64) int64 {
	v, at, rate := float64(0), int64(0), 0.0
	for _, c := range b.bends {
		if c.at > t {
			break
		}
		v += rate*float64(c.at-at) + float64(c.step)
		at, rate = c.at, c.rate
	}
	return b.start + t + int64(math.Round(v+rate*float64(t-at)))
}

// when is the true time of a reading between two; false where it was there twice or
// not at all.
func (b *bent) when(reading, from, until int64) (int64, bool) {
	var found []int64
	edges := []int64{from}
	for _, c := range b.bends {
		if c.at > from && c.at < until {
			edges = append(edges, c.at)
		}
	}
	edges = append(edges, until)
	for i, first := range edges[:len(edges)-1] {
		last := edges[i+1] - 1
		if b.read(first) > reading || b.read(last) < reading {
			continue
		}
		lo, hi := first, last
		for lo < hi {
			if t := lo + (hi-lo)/2; b.read(t) < reading {
				lo = t + 1
			} else {
				hi = t
			}
		}
		found = append(found, lo)
	}
	if len(found) != 1 {
		return 0, false
	}
	return found[0], true
}

// hosts are clocks of which every pair exchanges packets, window by window.
type hosts struct {
	rng    *rand.Rand
	clocks []bent
	pairs  map[[2]int]*pair.Estimator
	solver *Solver
	// lie changes the stamps of a packet that reaches clock c and leaves it again.
	lie func(c int, received, sent int64) (int64, int64)
}

func hostName(i int) string { return fmt.Sprintf("host:%d/b/raw", i) }

// newHosts makes n clocks that by changes at every 2 to 6 s for a minute, either way and
// back.
func newHosts(seed uint64, n int, by bend) *hosts {
	h := &hosts{rng: rand.New(rand.NewPCG(seed, 3)), pairs: map[[2]int]*pair.Estimator{}, solver: New(Options{Prefer: []string{hostName(0)}})}
	for i := range n {
		rate := (2*h.rng.Float64() - 1) * 50e-6
		b := bent{start: h.rng.Int64N(1e15), bends: []bend{{rate: rate}}}
		for at, k := int64(0), 0; at < 60*second && by != (bend{}); k++ {
			at += 2*second + h.rng.Int64N(4*second)
			sign := int64(1 - 2*h.rng.IntN(2))
			c := bend{at: at, rate: rate, step: sign * by.step}
			if k%2 == 0 {
				c.rate += float64(sign) * by.rate
			}
			b.bends = append(b.bends, c)
		}
		h.clocks = append(h.clocks, b)
		for j := range i {
			h.pairs[[2]int{j, i}] = pair.New(pair.Config{})
		}
	}
	return h
}

func (h *hosts) delay() int64 { return 180 + int64(250*math.Exp(1.337*h.rng.NormFloat64())) }

// window exchanges packets from one true time to another, and solves what they show.
func (h *hosts) window(t *testing.T, rate float64, from, until int64) *Solution {
	t.Helper()
	names := make([][2]int, 0, len(h.pairs))
	for p := range h.pairs {
		names = append(names, p)
	}
	slices.SortFunc(names, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, p := range names {
		e, src, dst := h.pairs[p], &h.clocks[p[0]], &h.clocks[p[1]]
		gap := float64(second) / rate
		for k := 0.0; ; k++ {
			at := from + int64((k+h.rng.Float64()/5)*gap)
			if at >= until {
				break
			}
			there := at + h.delay()
			back := there + 20_000
			home := back + h.delay()
			received, sent := dst.read(there), dst.read(back)
			if h.lie != nil {
				received, sent = h.lie(p[1], received, sent)
			}
			e.Upper(src.read(at), received, 0)
			e.Lower(src.read(home), sent, 0)
		}
		for _, est := range e.Close(src.read(until)) {
			require.NoError(t, h.solver.Add(est.Edge(hostName(p[0]), hostName(p[1]), model.EdgeProbe, model.StampKernel)))
		}
	}
	return h.solver.Solve()
}

// check counts how many placements there are, and how many the bounds do not hold.
func (h *hosts) check(sol *Solution, now int64) (checked, missed int) {
	for _, m := range sol.Models() {
		if !m.Bounded || m.Clock == m.Reference || m.Untrusted {
			continue
		}
		var c, ref int
		_, _ = fmt.Sscanf(m.Clock, "host:%d", &c)
		_, _ = fmt.Sscanf(m.Reference, "host:%d", &ref)
		for k := range int64(5) {
			r := m.From + (m.Until-m.From)*k/4
			at, ok := h.clocks[c].when(r, now-40*second, now)
			if !ok {
				continue
			}
			checked++
			off := float64(r + m.Offset - h.clocks[ref].read(at))
			if off += m.Drift * float64(r-m.At); math.Abs(off) > float64(m.Bound) {
				missed++
			}
		}
	}
	return checked, missed
}

// Clocks that are stepped, or change their frequency, are seen by their pairs at
// different times. No bound goes across that, and nobody is accused of it.
func TestBoundsHoldWhereClocksChange(t *testing.T) {
	for _, by := range []bend{{step: second / 10}, {rate: 500e-6}, {rate: 50e-6}, {rate: 1e-6}} {
		for _, rate := range []float64{10, 100} {
			t.Run(fmt.Sprintf("%v_ppm_%d_ns/%v_per_s", by.rate*1e6, by.step, rate), func(t *testing.T) {
				all, beyond, accused := 0, 0, []string{}
				for seed := range uint64(tier.N(t, 1, 3)) {
					h := newHosts(seed, 6, by)
					for w := range int64(20) {
						sol := h.window(t, rate, (2*w+1)*second, (2*w+3)*second)
						accused = append(accused, untrustedOf(sol)...)
						checked, missed := h.check(sol, (2*w+3)*second)
						all, beyond = all+checked, beyond+missed
					}
				}
				assert.Empty(t, accused)
				assert.Zero(t, beyond, "placements beyond their bound")
				assert.Greater(t, all, 300, "placements")
			})
		}
	}
}

// Stamps that are wrong on one side of a host, or are told again, contradict one another
// throughout: that host alone is marked.
func TestStampsThatContradictThemselvesMarkTheirHost(t *testing.T) {
	const liar = 5
	for name, lie := range map[string]func(received, sent int64) (int64, int64){
		"received 30 us too early":     func(received, sent int64) (int64, int64) { return received - 30_000, sent },
		"readings 100 ms old at worst": func(received, sent int64) (int64, int64) { return received - received%1e8, sent - sent%1e8 },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosts(1, 6, bend{})
			h.lie = func(c int, received, sent int64) (int64, int64) {
				if c != liar {
					return received, sent
				}
				return lie(received, sent)
			}
			for w := range int64(6) {
				sol := h.window(t, 100, (2*w+1)*second, (2*w+3)*second)
				if w < 2 {
					continue
				}
				require.Equal(t, []string{hostName(liar)}, untrustedOf(sol), strings.Repeat(".", int(w)))
				checked, missed := h.check(sol, (2*w+3)*second)
				assert.Positive(t, checked)
				assert.Zero(t, missed)
			}
		})
	}
}
