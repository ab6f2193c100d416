// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/bench/clocks/plan"
	"github.com/lockstep-otel/lockstep/internal/clock/pair"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// prober is one direction of two nodes of a simulated mesh.
type prober struct {
	own, peer string
	estimator *pair.Estimator
}

// Eight nodes that send one packet a second to each other, a coded pair in every two seconds
// at a moment of its own. The second of a pair is mostly soon, requests later than answers,
// and stamps are placed within some hundreds of ns, as between network namespaces.
func TestRarePacketsOfAMesh(t *testing.T) {
	const nodes, windows, settled = 8, 80, 17
	var off errors
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := &network{names: make([]string, nodes)}
		s := &scenario{rate: 1, k: nodes}
		begin := time.Unix(1_700_000_000, 0).UnixNano()
		all := s.nodes(w, begin, time.Minute, seed)
		j := newJudge(all, s)
		var probers []*prober
		for i := range all {
			for k := range all {
				if i != k {
					probers = append(probers, &prober{plan.RawClock(all[i].Name), plan.RawClock(all[k].Name), pair.New(pair.Config{Window: window, Overlap: window})})
				}
			}
		}
		for n := range int64(windows) {
			from := begin + n*int64(window)
			for _, p := range probers {
				at := from + rng.Int64N(int64(window))
				for _, soon := range []float64{14_000, 1200} {
					p.exchange(&j.truth, rng, at, soon)
					at += 70_000
				}
				r := plan.Report{Node: p.own}
				for _, est := range p.estimator.Close(j.truth.reads(p.own, from+int64(window))) {
					r.Edges = append(r.Edges, est.Edge(p.own, p.peer, model.EdgeProbe, model.StampKernel))
				}
				j.take(r, n > settled)
			}
			j.solve(n > settled)
		}
		require.Equal(t, j.f.raw.checked, j.f.raw.inside, "%v", j.f.raw.misses)
		require.Equal(t, j.f.edges.checked, j.f.edges.inside, "%v", j.f.edges.misses)
		off = append(off, j.f.raw.off...)
	}
	t.Logf("errors p50 p99 max %v", off)
	require.Greater(t, len(off), 1000)
	assert.LessOrEqual(t, off.quantile(0.99), float64(aimIdle))
	assert.LessOrEqual(t, off.quantile(0.5), 46.0)
}

// exchange is a request at true time at, whose delay is some 0.5 µs at least and mostly
// about as long as soon, and its answer.
func (p *prober) exchange(tr *truth, rng *rand.Rand, at int64, soon float64) {
	late := func(by float64) int64 { return 540 + int64(by*math.Exp(0.9*rng.NormFloat64())) }
	stamp := func(clock string, now int64) (int64, int64) {
		half := int64(250 * math.Exp(0.35*rng.NormFloat64()))
		return tr.reads(clock, now) + (2*rng.Int64N(half+1)-half)/4, half
	}
	there := at + late(soon)
	a, wa := stamp(p.own, at)
	b, wb := stamp(p.peer, there)
	p.estimator.Upper(a, b, wa+wb)
	back := there + 30_000
	home := back + late(soon/2)
	b, wb = stamp(p.peer, back)
	a, wa = stamp(p.own, home)
	p.estimator.Lower(a, b, wa+wb)
}
