// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What stamps can be wrong by differs from packet to packet and says nothing of their
// delay: the error is no larger for it.
func TestWidthsChooseNoSamples(t *testing.T) {
	var with, without []float64
	for seed := range uint64(100) {
		for errors, most := range map[*[]float64]int64{&with: 1000, &without: 1} {
			r, widths := rand.New(rand.NewPCG(seed, 9)), rand.New(rand.NewPCG(seed, 10))
			tr := &truth{base: r.Int64N(1e15), origin: origin, changes: []change{{origin, 20e-6, 0}}}
			e := New(Config{})
			for n := range int64(60) {
				for range 2 {
					at := origin + n*second + r.Int64N(second/2)
					e.Upper(at, tr.dst(at+veth(r)), widths.Int64N(most))
					e.Lower(at+20_000+veth(r), tr.dst(at+20_000), widths.Int64N(most))
				}
				for _, o := range e.Close(origin + (n+1)*second) {
					require.Zero(t, tr.outside(o, o.At))
					if !o.Provisional && n > 30 {
						*errors = append(*errors, max(float64(o.Offset-tr.offset(o.At)), float64(tr.offset(o.At)-o.Offset)))
					}
				}
			}
		}
	}
	require.Greater(t, len(with), 1000)
	t.Logf("error p50 %.0f, p90 %.0f ns; of widths of nothing %.0f, %.0f", quantile(with, 0.5), quantile(with, 0.9), quantile(without, 0.5), quantile(without, 0.9))
	assert.LessOrEqual(t, quantile(with, 0.5), 1.1*quantile(without, 0.5))
}

// Pairs that are equally good are believed to be so, within a factor of 2.5, where
// exchanges are rare: sigmas are weights.
func TestSigmasOfEqualPairs(t *testing.T) {
	var sigmas []float64
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		tr := &truth{base: r.Int64N(1e15), origin: origin, changes: []change{{origin, 20e-6, 0}}}
		last := 0.0
		tr.rounds(r, New(Config{}), 1, origin, origin+90*second, veth, func(out []Estimate) {
			for _, o := range out {
				last = o.Sigma
			}
		})
		sigmas = append(sigmas, last)
	}
	slices.Sort(sigmas)
	t.Logf("sigmas %.0f, %.0f, %.0f ns", sigmas[5], sigmas[50], sigmas[95])
	assert.Less(t, sigmas[95], 2.5*sigmas[5])
}

// Of readings that most pairs speak of at some time, most pairs do, where exchanges are
// rare and each pair's come at moments of their own: who solves for all clocks joins those
// that speak of one instant.
func TestRarePairsSpeakOfOneInstant(t *testing.T) {
	const pairs, windows = 30, 40
	newest := make([][]Estimate, windows)
	for seed := range uint64(pairs) {
		r := rand.New(rand.NewPCG(seed, 4))
		tr := &truth{base: r.Int64N(1e15), origin: origin, changes: []change{{origin, 20e-6, 0}}}
		e, last := New(Config{Overlap: DefaultWindow}), Estimate{}
		for n := range int64(windows) {
			if at := origin + n*2*second + r.Int64N(2*second); r.IntN(6) > 0 { // the others are lost
				e.Upper(at, tr.dst(at+slow(r)), 0)
				e.Lower(at+20_000+slow(r), tr.dst(at+20_000), 0)
			}
			for _, o := range e.Close(origin + (n+1)*2*second) {
				tr.check(t, r, o)
				last = o
			}
			newest[n] = append(newest[n], last)
		}
	}
	joined := 0
	for _, all := range newest[windows/2:] {
		most := 0
		for _, at := range all {
			n := 0
			for _, o := range all {
				if o.From <= at.At && at.At <= o.Until {
					n++
				}
			}
			most = max(most, n)
		}
		joined += most
	}
	share := float64(joined) / pairs / (windows / 2)
	t.Logf("%.2f of the pairs speak of one instant", share)
	assert.Greater(t, share, 0.85)
}

// By how little a line is believed to be wrong is for who weighs pairs. Which evidence belongs to
// a line is told by what its halves differ by, however wide its strip is: behind queues, where it
// is wide, a bent line would pass for a straight one.
func TestStripsAcceptNoEvidence(t *testing.T) {
	var n noise
	for range remembered {
		n.apart.learn(10)
		n.width.learn(10_000)
	}
	assert.Less(t, n.sigma(10_000), 30.0)
	assert.InDelta(t, 300, n.least(100), 1e-9)
}
