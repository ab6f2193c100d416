// SPDX-License-Identifier: Apache-2.0

package gpuclock

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gpu is a clock of known truth: units(host) = origin + (host-hostOrigin)/rate/(1+drift),
// floored to the resolution.
type gpu struct {
	origin, hostOrigin uint64
	rate, drift        float64
	resolution         uint64
}

func (g *gpu) stamp(host uint64) uint64 {
	u := g.origin + uint64(float64(host-g.hostOrigin)/g.rate/(1+g.drift))
	return u - u%g.resolution
}

// run feeds n operations, one each interval, and calls check after each with its
// true host start.
func (g *gpu) run(f *Fit, rng *rand.Rand, n int, interval uint64, check func(i int, start uint64)) {
	host := g.hostOrigin
	for i := range n {
		host += interval/2 + rng.Uint64N(interval)
		before := host
		start := before + 4_000 + uint64(rng.ExpFloat64()*30_000)
		stop := start + 20_000 + rng.Uint64N(500_000)
		after := stop + 8_000 + uint64(rng.ExpFloat64()*40_000)
		f.Add(before, g.stamp(start), g.stamp(stop), after)
		check(i, start)
		host = after
	}
}

func globaltimer(rng *rand.Rand, resolution uint64) *gpu {
	return &gpu{
		origin: 1_756_135_989_724_672_000 + rng.Uint64N(1e12), hostOrigin: 5_000_000_000_000 + rng.Uint64N(1e15),
		rate: 1, drift: (rng.Float64()*2 - 1) * 40e-6, resolution: resolution,
	}
}

func errorOf(f *Fit, g *gpu, start uint64) (err, bound float64) {
	stamp := g.stamp(start)
	h, ok := f.Host(stamp)
	if !ok {
		return math.NaN(), math.Inf(1)
	}
	return math.Abs(float64(int64(h - start))), f.Bound(stamp)
}

// The truth must lie within the bound, at every sample of every seed, and the
// bound must come down to what the latencies allow.
func TestBoundIsHonest(t *testing.T) {
	for _, tt := range []struct {
		name       string
		make       func(*rand.Rand) *gpu
		unit       Unit
		warm       int     // samples until a tight bound is asked
		finalBound float64 // ns
	}{
		{"globaltimer of 1,024 ns", func(r *rand.Rand) *gpu { return globaltimer(r, 1024) }, UnitNanoseconds, 200, 15_000},
		{"globaltimer of 1 us", func(r *rand.Rand) *gpu { return globaltimer(r, 1000) }, UnitNanoseconds, 200, 15_000},
		{"globaltimer of 32 ns", func(r *rand.Rand) *gpu { return globaltimer(r, 32) }, UnitNanoseconds, 200, 15_000},
		{"nanoseconds since some start", func(r *rand.Rand) *gpu {
			g := globaltimer(r, 1)
			g.origin = 1 + r.Uint64N(1e13)
			return g
		}, UnitNanoseconds, 400, 15_000},
		{"ticks of 100 MHz", func(r *rand.Rand) *gpu {
			return &gpu{origin: 1 + r.Uint64N(1e14), hostOrigin: 1e12 + r.Uint64N(1e15), rate: 10, drift: 20e-6, resolution: 1}
		}, UnitTicks, 2000, 15_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const seeds, ops = 50, 2500
			samples, outside := 0, 0
			for seed := range uint64(seeds) {
				rng := rand.New(rand.NewPCG(seed, 7))
				g, f := tt.make(rng), &Fit{}
				g.run(f, rng, ops, 4_000_000, func(i int, start uint64) {
					err, bound := errorOf(f, g, start)
					if !f.Ready() {
						return
					}
					samples++
					if err > bound {
						outside++
					}
					if i == ops-1 {
						assert.Less(t, bound, tt.finalBound)
					}
				})
				require.Equal(t, tt.unit, f.Unit())
				assert.Zero(t, f.Stats().Resets)
				assert.InDelta(t, g.rate*(1+g.drift), f.Rate(), g.rate*10e-6)
			}
			assert.Greater(t, samples, seeds*(ops-tt.warm))
			assert.LessOrEqual(t, float64(outside), 0.001*float64(samples), "%d of %d outside the bound", outside, samples)
		})
	}
}

// Work that is enqueued ahead starts tens of milliseconds after its launch, always.
// The bound says so; the estimate must not be off by half of it.
func TestEstimateUnderQueueing(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		g, f := globaltimer(rng, 32), &Fit{}
		host := g.hostOrigin
		for i := range 600 {
			before := host
			start := before + 15_000_000 + rng.Uint64N(10_000_000)
			stop := start + 2_000_000
			after := stop + 3_000 + uint64(rng.ExpFloat64()*100_000)
			f.Add(before, g.stamp(start), g.stamp(stop), after)
			host = before + 15_000_000
			if err, bound := errorOf(f, g, start); i > 300 {
				require.Less(t, err, bound)
				require.Less(t, err, 60_000.0, "seed %d, sample %d", seed, i)
				require.Greater(t, bound, 10e6)
				require.Less(t, f.Sigma(), 20_000.0)
			}
		}
	}
}

// A first delivery that came late draws a line far off. The next operation must not
// be converted by it, to a time at which it was long over.
func TestALateDeliveryIsContradictedAtOnce(t *testing.T) {
	g := gpu{origin: 1_700_000_000_000_000_000, hostOrigin: 1_000_000_000_000, rate: 1, resolution: 1}
	const ms = 1_000_000
	at := func(host uint64) uint64 { return g.hostOrigin + host }
	stamp := func(host uint64) uint64 { return g.stamp(at(host)) }
	var f Fit
	f.Add(at(0), stamp(0.02*ms), stamp(4*ms), at(54*ms))
	f.Add(at(54.1*ms), stamp(54.2*ms), stamp(58*ms), at(58.1*ms))
	start, ok := f.Host(stamp(54.2 * ms))
	require.True(t, ok)
	assert.GreaterOrEqual(t, start, at(54.1*ms), "after its launch")
	stop, _ := f.Host(stamp(58 * ms))
	assert.LessOrEqual(t, stop, at(58.1*ms), "before its end was seen")
}

// Ticks are not nanoseconds: until their rate is known to 1e-4, nothing is converted.
func TestTicksAreNotTakenForNanoseconds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	g, f := &gpu{origin: 77_000_000_000, hostOrigin: 1e12, rate: 10, resolution: 1}, &Fit{}
	first := -1
	g.run(f, rng, 2000, 4_000_000, func(i int, start uint64) {
		_, ok := f.Host(g.stamp(start))
		if ok && first < 0 {
			first = i
			assert.InDelta(t, 10, f.rate, 10*tickRate)
		}
	})
	assert.Greater(t, first, 1, "two samples do not tell a rate")
	assert.Equal(t, UnitTicks, f.Unit())
}

func TestAStepResetsTheFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	g, f := globaltimer(rng, 32), &Fit{}
	g.run(f, rng, 500, 4_000_000, func(int, uint64) {})
	f.Refit()
	require.Zero(t, f.Stats().Resets)
	later := *g
	later.hostOrigin += 100e9
	later.origin += 100e9 + 3_000_000 // the GPU's clock jumps by 3 ms
	outside := 0
	later.run(f, rng, 1000, 4_000_000, func(i int, start uint64) {
		if err, bound := errorOf(f, &later, start); i > 600 && err > bound {
			outside++
		}
	})
	assert.Zero(t, outside)

	jumped := later
	jumped.hostOrigin += 10e9
	jumped.origin += 10e9 - 5_000_000
	jumped.run(f, rng, 600, 4_000_000, func(int, uint64) {})
	assert.Positive(t, f.Stats().Resets)
}

func TestBadBrackets(t *testing.T) {
	f := &Fit{}
	f.Add(10, 1_756_135_989_724_672_000, 1_756_135_989_724_671_000, 20)
	f.Add(20, 1_756_135_989_724_672_000, 1_756_135_989_724_672_000, 10)
	f.Add(0, 0, 0, 0)
	assert.Equal(t, Stats{Refused: 3}, f.Stats())
	_, ok := f.Host(5)
	assert.False(t, ok)
	assert.True(t, math.IsInf(f.Bound(5), 1))
	for _, u := range []Unit{UnitUnknown, UnitNanoseconds, UnitTicks} {
		assert.NotEmpty(t, u.String())
	}
}

func TestNoAllocation(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	g, f := globaltimer(rng, 32), &Fit{}
	host := g.hostOrigin
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		host += 1_000_000
		f.Add(host, g.stamp(host+5000), g.stamp(host+25000), host+50000)
		f.Host(g.stamp(host))
		f.Refit()
	}))
}

func BenchmarkAdd(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 3))
	g, f := globaltimer(rng, 32), &Fit{}
	host := g.hostOrigin
	b.ReportAllocs()
	for b.Loop() {
		host += 10_000
		f.Add(host, g.origin+host-g.hostOrigin+5000, g.origin+host-g.hostOrigin+7000, host+9000)
	}
}

func FuzzAdd(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint64(3), uint64(4), uint64(100))
	f.Add(uint64(1e18), uint64(1.7e18), uint64(1.7e18), uint64(1e18), uint64(1<<63))
	f.Fuzz(func(_ *testing.T, before, start, stop, after, jump uint64) {
		fit := &Fit{}
		for i := range uint64(64) {
			fit.Add(before+i*jump, start+i*jump/3, stop+i*jump/3, after+i*jump)
		}
		fit.Refit()
		fit.Host(start + jump)
		fit.Bound(stop)
	})
}
