// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClockIsItsOwnInverse(t *testing.T) {
	c := Clock{Start: 1e14, Drift: 47e-6, Swing: 0.03e-6, Period: 600e9, Phase: 1}
	for _, at := range []float64{0, 1, 1e9, 300e9, 3600e9} {
		r := c.Read(at)
		assert.LessOrEqual(t, float64(r-c.Start), c.elapsed(at))
		assert.InDelta(t, at, c.When(r), 1.01, "within the ns that a reading cuts off")
	}
}

// The rate is the derivative of the reading.
func TestRate(t *testing.T) {
	c := Clock{Drift: -20e-6, Swing: 0.5e-6, Period: 60e9, Phase: 2}
	for at := 1e9; at < 60e9; at += 7e9 {
		const step = 1e7
		slope := (c.elapsed(at+step) - c.elapsed(at-step)) / (2 * step)
		assert.InDelta(t, slope-1, c.Rate(at), 1e-11)
	}
}

// A packet waits behind each queue with the probability of its load, and then as
// long as an M/M/1 queue makes it: 120 ns / (1-load).
func TestDelayIsThatOfQueues(t *testing.T) {
	f := NewFabric(0.8, 1)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tt := range []struct{ src, dst, queues int }{{0, 1, 2}, {0, 40, 4}, {0, 600, 6}} {
		r := f.route(tt.src, tt.dst, 0)
		require.Equal(t, tt.queues, r.queues)
		const n = 200_000
		sum, least := 0.0, math.Inf(1)
		for range n {
			d := f.delay(r, rng) - r.least
			sum, least = sum+d, min(least, d)
		}
		assert.InEpsilon(t, float64(tt.queues)*0.8*600, sum/n, 0.02)
		assert.GreaterOrEqual(t, least, 0.0)
	}
}

// Both directions of a path differ by cables, and by not more than these: of two
// upper layers, 5 ns a metre.
func TestPathsAreAsymmetric(t *testing.T) {
	f := NewFabric(0.8, 1)
	differ := 0
	for dst := 600; dst < 700; dst++ {
		apart := math.Abs(f.route(0, dst, 1).least - f.route(dst, 0, 1).least)
		assert.LessOrEqual(t, apart, 2*5*(100+30.0))
		if apart > 1 {
			differ++
		}
	}
	assert.Greater(t, differ, 90)
}

func TestMeshIsConnectedAndRegular(t *testing.T) {
	c := New(Config{Nodes: 500, Seed: 5})
	degree := make([]int, 500)
	root := make([]int, 500)
	for i := range root {
		root[i] = i
	}
	var find func(i int) int
	find = func(i int) int {
		if root[i] != i {
			root[i] = find(root[i])
		}
		return root[i]
	}
	for _, p := range c.Pairs {
		degree[p[0]]++
		degree[p[1]]++
		root[find(p[0])] = find(p[1])
	}
	for i, d := range degree {
		assert.LessOrEqual(t, d, 10)
		assert.GreaterOrEqual(t, d, 7, "only pairs that two cycles share are missing")
		assert.Equal(t, find(0), find(i))
	}
}

// gap takes the least upper and the greatest lower bound of an offset.
type gap struct {
	upper, lower []int64
	at           []int64
}

func (g *gap) Upper(a, b, _ int64) { g.upper, g.at = append(g.upper, b-a), append(g.at, a) }
func (g *gap) Lower(a, b, _ int64) { g.lower = append(g.lower, b-a) }

// Without outliers every sample bounds the truth; late sending does not change
// that, and early stamps do.
func TestSamplesBoundTheTruth(t *testing.T) {
	for _, tt := range []struct {
		cfg   Config
		fault Fault
		holds bool
	}{
		{Config{}, Fault{}, true},
		{Config{}, Fault{Slow: 1e5}, true},
		{Config{}, Fault{Early: 1e5}, false},
		{Config{}, Fault{Faces: 1e6}, false},
		{Config{}, Fault{Replay: 5}, false},
		{Config{Outliers: 0.05}, Fault{}, false},
	} {
		tt.cfg.Nodes, tt.cfg.Seed, tt.cfg.Rate = 4, 1, 100
		c := New(tt.cfg)
		c.Faults[3] = tt.fault
		held := true
		for i, p := range c.Pairs {
			if p[1] != 3 {
				continue
			}
			var g gap
			c.Prober(i).Until(2e9, &g)
			require.Len(t, g.upper, 200)
			for k, at := range g.at {
				truth := c.Offset(p[1], p[0], at)
				held = held && g.upper[k] >= truth-1 && g.lower[k] <= truth+5
			}
		}
		assert.Equal(t, tt.holds, held, "%+v %+v", tt.cfg, tt.fault)
	}
}

func TestSameSeedSameStamps(t *testing.T) {
	var a, b gap
	New(Config{Nodes: 16, Seed: 7, Outliers: 0.01}).Prober(3).Until(3e9, &a)
	New(Config{Nodes: 16, Seed: 7, Outliers: 0.01}).Prober(3).Until(3e9, &b)
	assert.Equal(t, a, b)
	b = gap{}
	New(Config{Nodes: 16, Seed: 8, Outliers: 0.01}).Prober(3).Until(3e9, &b)
	assert.NotEqual(t, a, b)
}
