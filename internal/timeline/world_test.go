// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/clock"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// world is a set of clocks of which everything is known exactly. Its time is ns
// since start, which is also what an ideal clock shows beyond epoch.
type world struct {
	t      *testing.T
	tl     *Timeline
	rng    *rand.Rand
	now    int64
	clocks map[string]func(at int64) int64
	pairs  [][2]string
	source map[[2]string]string
	// halfWidth and noise of what edges say, ns.
	halfWidth, noise float64
	findings         []model.Finding
	models           []model.ClockModel
}

const (
	epoch   = int64(1_795_000_000_123_456_789)
	sec     = int64(1e9)
	windowN = 2 * sec
)

func newWorld(t *testing.T, seed uint64, opt Options) *world {
	t.Helper()
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 99)), clocks: map[string]func(int64) int64{},
		source: map[[2]string]string{}, halfWidth: 1000, noise: 50,
	}
	opt.Now = func() time.Time { return time.Unix(0, epoch+w.now) }
	w.tl = New(opt)
	return w
}

// linear is a clock that is off by offset and runs ppm fast.
func linear(offset int64, ppm float64) func(int64) int64 {
	return func(at int64) int64 { return at + offset + int64(math.Round(ppm*1e-6*float64(at))) }
}

func raw(i int) string      { return fmt.Sprintf("host:h%d/b1/raw", i) }
func realtime(i int) string { return fmt.Sprintf("host:h%d/b1/realtime", i) }

// host adds a raw clock and a real-time clock that is off by skew.
func (w *world) host(i int, ppm float64, skew int64) {
	w.clocks[raw(i)] = linear(int64(i)*1e12+7e14, ppm)
	w.clocks[realtime(i)] = linear(epoch+skew, 0)
	w.join(raw(i), realtime(i), model.EdgePair)
}

func (w *world) join(a, b, source string) {
	w.pairs = append(w.pairs, [2]string{a, b})
	w.source[[2]string{a, b}] = source
}

// ring joins the raw clocks of hosts from..to with the next three.
func (w *world) ring(from, to int) {
	n := to - from
	for i := range n {
		for d := 1; d <= min(3, n-1); d++ {
			if j := (i + d) % n; i < j || d < n-d {
				w.join(raw(from+i), raw(from+j), model.EdgeProbe)
			}
		}
	}
}

// edge is what the window that ends now says of two clocks: the truth in its middle
// within an interval that holds it, and an estimate near it.
func (w *world) edge(a, b string) model.ClockEdge {
	mid := w.now - windowN/2
	at, to := w.clocks[a](mid), w.clocks[b](mid)
	lo, hi := w.halfWidth*(0.1+w.rng.Float64()), w.halfWidth*(0.1+w.rng.Float64())
	e := model.ClockEdge{
		Src: a, Dst: b, At: at, Span: windowN, Lower: to - at - int64(lo), Upper: to - at + int64(hi),
		Sigma: w.noise, Samples: 200, Source: w.source[[2]string{a, b}], Stamps: model.StampKernel,
	}
	estimate := to - at + int64(math.Round(w.rng.NormFloat64()*w.noise))
	e.Offset = max(e.Lower, min(e.Upper, estimate))
	const h = sec / 2
	rate := float64(w.clocks[b](mid+h)-w.clocks[b](mid-h))/float64(w.clocks[a](mid+h)-w.clocks[a](mid-h)) - 1
	e.DriftBound = 0.05e-6
	e.Drift = rate + (w.rng.Float64()-0.5)*e.DriftBound
	return e
}

// window lets two seconds pass and solves what they show.
func (w *world) window() {
	w.t.Helper()
	w.now += windowN
	for _, p := range w.pairs {
		require.NoError(w.t, w.tl.AddEdge(w.edge(p[0], p[1])))
	}
	w.advance()
}

func (w *world) advance() {
	out := w.tl.Advance(time.Unix(0, epoch+w.now))
	w.findings = append(w.findings, out.Findings...)
	w.models = append(w.models, out.Models...)
}

func (w *world) place(id string, at int64) clock.Placement {
	p, ok := w.tl.Place(id, w.clocks[id](at))
	if !ok {
		w.t.Helper()
		w.t.Fatalf("place %s", id)
	}
	return p
}

// meet checks that two placements of one moment are bounded, and within their bounds.
func (w *world) meet(p, q clock.Placement, where func() string) {
	if !p.Bounded || !q.Bounded || p.Timeline != q.Timeline || distance(p.Time, q.Time) > p.Bound+q.Bound {
		w.t.Helper()
		w.t.Fatalf("%s: got %+v and %+v; want both within their bounds", where(), p, q)
	}
}

func (w *world) add(edges []model.ClockEdge) {
	for _, e := range edges {
		if err := w.tl.AddEdge(e); err != nil {
			w.t.Helper()
			require.NoError(w.t, err)
		}
	}
}

// contains checks that what a clock reads at a moment is placed where its timeline's
// reference is placed at that moment, within the bound.
func (w *world) contains(id string, at int64) clock.Placement {
	w.t.Helper()
	p := w.place(id, at)
	require.True(w.t, p.Bounded, id)
	ref := w.place(p.Timeline[len(Prefix):], at)
	require.Equal(w.t, ref.Timeline, p.Timeline)
	require.LessOrEqual(w.t, distance(p.Time, ref.Time), p.Bound, "%s at %v", id, time.Duration(at))
	return p
}
