// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const origin = int64(1_000_000_000_000_000_000) // readings like Unix ns of a lazy century

// course is a truth whose frequency changes, or whose clock steps, every gap or so.
func course(r *rand.Rand, c change, gap, until int64) *truth {
	tr := &truth{base: 3_700_000, origin: origin, changes: []change{{origin, 20e-6, 0}}}
	for k := int64(1); k*gap < until; k++ {
		next := change{t: origin + k*gap + r.Int64N(2*second), drift: 20e-6, step: c.step}
		if k%2 == 1 {
			next.drift += c.drift
		}
		tr.changes = append(tr.changes, next)
	}
	return tr
}

// outside is by how much the truth lies outside of the bounds at a reading.
func (tr *truth) outside(o Estimate, reading int64) int64 {
	lower, upper := o.BoundsAt(reading)
	x := tr.offset(reading)
	switch {
	case x < lower:
		return lower - x
	case x > upper:
		return x - upper
	}
	return 0
}

// check asks the bounds at both ends and at random readings in between.
func (tr *truth) check(t *testing.T, r *rand.Rand, o Estimate) {
	t.Helper()
	readings := []int64{o.From, o.At, o.Until}
	for range 20 {
		readings = append(readings, o.From+r.Int64N(o.Until-o.From+1))
	}
	for _, at := range readings {
		if d := tr.outside(o, at); d > 0 {
			t.Fatalf("the offset at %.3f s is %d ns outside of the bounds of %+v", float64(at-tr.origin)/1e9, d, o)
		}
		if d := math.Abs(tr.driftAt(at) - o.Drift); d > o.DriftBound {
			t.Fatalf("the drift at %.3f s is %v from that of %+v", float64(at-tr.origin)/1e9, d, o)
		}
	}
	require.LessOrEqual(t, o.Lower, o.Offset)
	require.LessOrEqual(t, o.Offset, o.Upper)
}

var delays = []struct {
	name  string
	delay func(*rand.Rand) int64
}{{"idle", veth}, {"busy", busy}, {"queues", clos}}

// runsOf spends about as many probes at each rate.
func runsOf(rate float64) uint64 { return uint64(min(max(100/rate, 1), 6)) }

var someChanges = []struct {
	name string
	change
}{
	{"none", change{}},
	{"0.1 ppm", change{drift: 0.1e-6}},
	{"1 ppm", change{drift: 1e-6}},
	{"50 ppm", change{drift: -50e-6}},
	{"500 ppm", change{drift: 500e-6}},
	{"100 ms forward", change{step: 100_000_000}},
	{"100 ms back", change{step: -100_000_000}},
}

// The offset and the drift lie within their bounds at every reading that an estimate
// speaks of, wherever in a window the clocks change.
func TestBoundsContainTheTruthThroughChanges(t *testing.T) {
	for _, d := range delays {
		for _, rate := range []float64{1, 10, 100, 1000} {
			for _, c := range someChanges {
				t.Run(fmt.Sprintf("%s/%v_per_s/%s", d.name, rate, c.name), func(t *testing.T) {
					gap := 4 * second
					if rate == 1 {
						gap = 16 * second
					}
					covered := int64(0)
					until := 6 * gap
					for seed := range runsOf(rate) {
						r := rand.New(rand.NewPCG(seed, uint64(rate)))
						tr := course(r, c.change, gap, until)
						e := New(Config{})
						tr.probes(r, e, rate, origin, origin+until, d.delay, func(_ int64, out []Estimate) {
							for _, o := range out {
								tr.check(t, r, o)
								if !o.Provisional {
									covered += o.Until - o.From
								}
							}
						})
					}
					assert.Greater(t, covered, until/3, "much of the time is spoken of")
				})
			}
		}
	}
}

// Small changes may come all the time: that is what Wander allows for. Messages that
// take no time leave no room for anything else.
func TestBoundsContainTheTruthOfAWanderingClock(t *testing.T) {
	instant := func(*rand.Rand) int64 { return 0 }
	for name, delay := range map[string]func(*rand.Rand) int64{"idle": veth, "instant": instant} {
		for _, rate := range []float64{1, 10, 100, 1000} {
			for _, mode := range []string{"up", "to and fro", "random"} {
				t.Run(fmt.Sprintf("%s/%v_per_s/%s", name, rate, mode), func(t *testing.T) {
					r := rand.New(rand.NewPCG(5, uint64(rate)))
					tr := &truth{base: -8_000_000, origin: origin, changes: wandering(r, mode)}
					settled := 0
					e := New(Config{})
					tr.probes(r, e, rate, origin, origin+80*second, delay, func(_ int64, out []Estimate) {
						for _, o := range out {
							tr.check(t, r, o)
							settled++
						}
					})
					assert.Greater(t, settled, 30)
					assert.Zero(t, e.Stats().Changes)
				})
			}
		}
	}
}

// wandering changes its frequency five times a second, by 0.1 ppm at most in 2 s.
func wandering(r *rand.Rand, mode string) []change {
	out := []change{{origin, -30e-6, 0}}
	for k := range int64(400) {
		drift := out[k].drift
		switch mode {
		case "up":
			drift += 0.01e-6
		case "to and fro":
			drift = -30e-6 + 0.1e-6*float64(k/5%2)
		default:
			drift += 0.02e-6 * (r.Float64() - 0.5)
		}
		out = append(out, change{t: origin + k*second/5, drift: drift})
	}
	return out
}

// After the last window the bound grows, and holds as long as the frequency wanders
// by no more than it may.
func TestExtrapolationHoldsForFourWindows(t *testing.T) {
	for _, rate := range []float64{1, 10, 1000} {
		r := rand.New(rand.NewPCG(9, uint64(rate)))
		tr := &truth{base: 1e9, origin: origin, changes: []change{{origin, 5e-6, 0}}}
		e, asked := New(Config{}), 0
		tr.probes(r, e, rate, origin, origin+60*second, veth, func(_ int64, out []Estimate) {
			for _, o := range out {
				for range 20 {
					x := r.Int64N(8 * second)
					late := &truth{base: tr.base, origin: origin, changes: []change{tr.changes[0], {o.Until, 5e-6 + 0.1e-6, 0}}}
					for k := int64(1); k < 4; k++ {
						late.changes = append(late.changes, change{o.Until + 2*k*second, 5e-6 + 0.1e-6*float64(k+1), 0})
					}
					require.Zero(t, late.outside(o, o.Until+x), "%d ns after %+v", x, o)
					require.Zero(t, tr.outside(o, max(origin, o.From-x)), "%d ns before %+v", x, o)
					asked++
				}
			}
		})
		assert.Greater(t, asked, 300)
	}
}

// Goals of the issue: at 200 ns in 99 % of windows where nothing else runs, 1 us
// where the cores are busy, and 0.1 ppm.
func TestErrorsAreSmall(t *testing.T) {
	for _, tt := range []struct {
		name  string
		delay func(*rand.Rand) int64
		goal  float64
	}{{"idle", veth, 200}, {"busy", busy, 1000}} {
		for _, rate := range []float64{1, 10, 100, 1000} {
			t.Run(fmt.Sprintf("%s/%v_per_s", tt.name, rate), func(t *testing.T) {
				s := measure(rate, tt.delay, 1+runsOf(rate)/2)
				require.Greater(t, len(s.errors), 50)
				assert.LessOrEqual(t, quantile(s.errors, 0.99), tt.goal)
				assert.LessOrEqual(t, quantile(s.drifts, 0.99), 0.1e-6)
			})
		}
	}
}

// Stamps that lie inside of the zone are dropped where they contradict those around
// them, and no truthful one with them as long as one stamp in 100 lies.
func TestLiarsAreDropped(t *testing.T) {
	for _, rate := range []float64{10, 100, 1000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 3))
			tr := &truth{base: 3_700_000, origin: origin, changes: []change{{origin, 20e-6, 0}}}
			e := New(Config{})
			lies, bad, n := int64(0), 0, 0
			lying := func(r *rand.Rand) int64 {
				if r.Float64() < 0.01 {
					lies++
					return -50_000 - r.Int64N(1_000_000)
				}
				return veth(r)
			}
			tr.probes(r, e, rate, origin, origin+60*second, lying, func(_ int64, out []Estimate) {
				for _, o := range out {
					if n++; tr.outside(o, o.At) > 0 {
						bad++
					}
				}
			})
			assert.InDelta(t, lies, e.Stats().Liars, 0.05*float64(lies)+8)
			assert.Zero(t, bad, "of %d", n)
		})
	}
}

// A step makes no liars.
func TestAStepAccusesNobody(t *testing.T) {
	for _, c := range someChanges {
		r := rand.New(rand.NewPCG(1, 2))
		tr := course(r, c.change, 6*second, 60*second)
		e := New(Config{})
		tr.probes(r, e, 100, origin, origin+60*second, veth, func(int64, []Estimate) {})
		assert.LessOrEqual(t, e.Stats().Liars, int64(1), c.name)
	}
}

func TestAStepIsSeenAndNamed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	at := origin + 31*second + 123_456_789
	tr := &truth{base: 5, origin: origin, changes: []change{{origin, 20e-6, 0}, {at, 20e-6, -100_000_000}}}
	e := New(Config{})
	var all []Estimate
	told := false
	tr.probes(r, e, 100, origin, origin+60*second, veth, func(_ int64, out []Estimate) {
		for _, o := range out {
			if !o.Provisional {
				all = append(all, o)
			} else if o.From > at {
				told = true // at the window's end, long before it is settled
				assert.True(t, o.Stepped)
				assert.Zero(t, tr.outside(o, o.At))
			}
		}
	})
	assert.True(t, told)
	assert.Equal(t, int64(1), e.Stats().Changes)
	stepped := 0
	for i, o := range all {
		assert.False(t, o.From < at && at < o.Until, "no estimate spans the step")
		if o.Stepped {
			stepped++
			assert.True(t, all[i-1].Until <= at && at <= o.From)
			assert.InDelta(t, at, o.From, 0.2e9)
		}
	}
	assert.Equal(t, 1, stepped)
}

// A NIC that takes 100 us longer to send than it says, always, is not seen: the
// estimate is off by half of it, and the bounds contain the truth all the same.
func TestConstantAsymmetryIsCoveredByTheBound(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	tr := &truth{base: 100, origin: origin, changes: []change{{origin, 20e-6, 0}}}
	e, forth, settled := New(Config{}), false, 0
	late := func(r *rand.Rand) int64 {
		if forth = !forth; forth {
			return 100_000 + veth(r)
		}
		return veth(r)
	}
	tr.probes(r, e, 100, origin, origin+60*second, late, func(_ int64, out []Estimate) {
		for _, o := range out {
			settled++
			tr.check(t, r, o)
			if !o.Provisional {
				assert.InDelta(t, 50_000, o.Offset-tr.offset(o.At), 1000)
			}
		}
	})
	assert.Greater(t, settled, 20)
	assert.Zero(t, e.Stats().Changes)
	assert.Zero(t, e.Stats().Liars)
}

// Raw against Unix time: offsets of 1.7e18 ns, set by an hour in between, keep their
// last nanosecond.
func TestLargeOffsetsLoseNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	start := int64(1_000_000_000)
	tr := &truth{base: 1_700_000_000_123_456_789, origin: start, changes: []change{
		{start, 500e-6, 0}, {start + 20*second, 500e-6, 3600 * second}, {start + 40*second, -400e-6, -1800 * second},
	}}
	e, near := New(Config{}), 0
	tr.probes(r, e, 100, start, start+60*second, veth, func(_ int64, out []Estimate) {
		for _, o := range out {
			tr.check(t, r, o)
			if math.Abs(float64(o.Offset-tr.offset(o.At))) < 50 {
				near++
			}
		}
	})
	assert.Greater(t, near, 20)
	assert.Equal(t, int64(2), e.Stats().Changes)
}

// A replay may bring all samples before the first window is closed, in any order, and
// windows may be closed at any time: the bounds hold, and what changed is seen.
func TestAnyRhythmOfClose(t *testing.T) {
	for _, every := range []int64{second / 10, 2 * second, 7 * second} {
		r := rand.New(rand.NewPCG(8, 8))
		tr := course(r, change{drift: 50e-6}, 8*second, 60*second)
		e, covered := New(Config{}), int64(0)
		for range 60 * 20 {
			at := origin + r.Int64N(60*second)
			e.Upper(at, tr.dst(at+veth(r)), 0)
			e.Lower(at+20_000+veth(r), tr.dst(at+20_000), 0)
		}
		for at := origin; at <= origin+60*second; at += every {
			for _, o := range e.Close(at) {
				tr.check(t, r, o)
				if !o.Provisional {
					covered += o.Until - o.From
				}
			}
		}
		assert.Greater(t, covered, 50*second)
		assert.GreaterOrEqual(t, e.Stats().Changes, int64(6))
	}
}

// What comes late, as a stamp does that the next packet bears, serves what is not
// estimated yet.
func TestLateSamplesAreTakenUp(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	tr := &truth{base: 9, origin: origin, changes: []change{{origin, 20e-6, 0}}}
	e, n := New(Config{}), 0
	type exchange struct{ t, upper, back, lower int64 }
	var waiting []exchange
	for at := origin; at < origin+60*second; at += second / 10 {
		x := exchange{t: at, upper: tr.dst(at + veth(r)), back: at + 20_000 + veth(r), lower: tr.dst(at + 20_000)}
		e.Upper(x.t, x.upper, 0)
		if waiting = append(waiting, x); len(waiting) > 4 {
			e.Lower(waiting[0].back, waiting[0].lower, 0)
			waiting = waiting[1:]
		}
		if (at-origin)%(2*second) == 0 {
			for _, o := range e.Close(at) {
				tr.check(t, r, o)
				if !o.Provisional {
					assert.InDelta(t, tr.offset(o.At), o.Offset, 200)
					n++
				}
			}
		}
	}
	assert.Greater(t, n, 25)
}

// With samples of one direction there is one bound and no estimate.
func TestOneDirectionBoundsOneSide(t *testing.T) {
	tr := &truth{base: -40, origin: 0, changes: []change{{0, 10e-6, 0}}}
	for _, upper := range []bool{true, false} {
		r := rand.New(rand.NewPCG(1, 2))
		e, settled := New(Config{}), 0
		for at := int64(0); at < 20*second; at += second / 50 {
			if upper {
				e.Upper(at, tr.dst(at+veth(r)), 0)
			} else {
				e.Lower(at+veth(r), tr.dst(at), 0)
			}
			if at%(2*second) != 0 {
				continue
			}
			for _, o := range e.Close(at) {
				settled++
				assert.Equal(t, upper, o.HasUpper)
				assert.Equal(t, !upper, o.HasLower)
				assert.Zero(t, o.Sigma)
				assert.Zero(t, tr.outside(o, o.At))
				edge := o.Edge("a", "b", model.EdgeMessage, model.StampApplication)
				assert.Equal(t, !upper, edge.Upper == model.NoUpper)
				assert.Equal(t, upper, edge.Lower == model.NoLower)
				assert.True(t, math.IsInf(edge.Width(), 1))
			}
		}
		assert.Greater(t, settled, 8)
	}
}

// One call and its answer are enough for a first bound: the offset lies between
// what the request and the reply say, give or take MaxDrift over the call.
func TestOneExchangeGivesABound(t *testing.T) {
	e := New(Config{Resolution: 1})
	e.Upper(1_000_000, 5_001_000, 10) // offset at most 4,001,000 + 10 + 1
	e.Lower(1_200_000, 5_199_000, 10) // at least 3,999,000 - 10 - 1
	out := e.Close(2_000_000_000)
	require.Len(t, out, 1)
	o := out[0]
	assert.True(t, o.Provisional)
	assert.Equal(t, []int64{1_000_000, 1_100_000, 1_200_000}, []int64{o.From, o.At, o.Until})
	// 1e-3 of the 200,000 ns between both, and a nanosecond for the arithmetic.
	assert.Equal(t, []int64{3_998_989 - 200 - 1, 4_001_011 + 200 + 1}, []int64{o.Lower, o.Upper})
	assert.Equal(t, int64(4_000_000), o.Offset)
	assert.Equal(t, int64(2), o.Samples)
	edge := o.Edge("a", "b", model.EdgeCall, model.StampApplication)
	assert.Equal(t, model.ClockEdge{
		Src: "a", Dst: "b", At: 1_100_000, Span: 200_000, Lower: o.Lower, Upper: o.Upper, Offset: 4_000_000,
		Sigma: edge.Sigma, Drift: 0, DriftBound: 1e-3, Samples: 2, Source: model.EdgeCall, Stamps: model.StampApplication,
	}, edge)
}

func TestBadSamplesAreRefusedAndCounted(t *testing.T) {
	e := New(Config{})
	e.Upper(math.MaxInt64, 1, 0)
	e.Upper(1, math.MinInt64, 0)
	e.Lower(1, 2, -1)
	e.Lower(1, 2, math.MaxInt64)
	e.Lower(-maxReading, maxReading, 0)
	assert.Equal(t, int64(5), e.Stats().Refused)
	assert.Zero(t, e.Stats().Samples)
	assert.Empty(t, e.Close(1e18))
}

// Src that reads an hour less than before starts anew.
func TestSrcSetBackStartsAnew(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tr := &truth{base: 77, origin: 0, changes: []change{{0, 0, 0}}}
	e, last := New(Config{}), Estimate{}
	keep := func(_ int64, out []Estimate) {
		for _, o := range out {
			last = o
		}
	}
	tr.probes(r, e, 10, 3600*second, 3660*second, veth, keep)
	tr.probes(r, e, 10, 0, 60*second, veth, keep)
	assert.Positive(t, e.Stats().Late)
	assert.Less(t, last.Until, 60*second)
	assert.Zero(t, tr.outside(last, last.At))
}

// Memory stays bounded whatever comes between two calls of Close.
func TestMemoryIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	e := New(Config{MaxSamples: 256})
	for i := range int64(50_000) {
		e.Upper(r.Int64N(1e15), r.Int64N(1e15), 0)
		e.Lower(r.Int64N(1e15), r.Int64N(1e15), 0)
		if i%1000 == 0 {
			e.Close(i)
		}
	}
	assert.LessOrEqual(t, len(e.upper.pending), 256)
	assert.LessOrEqual(t, len(e.lower.pending), 256)
	assert.Positive(t, e.Stats().Overflow)
	assert.LessOrEqual(t, len(e.upper.kept), 256*keptFactor)
}

func FuzzEstimator(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27}, int64(1000), int64(2_000_000_000))
	f.Add([]byte("\x00\xff\x80\x7f abcdefghijklmnopqrstuvwxyz"), int64(1e17), int64(1e18))
	f.Fuzz(func(t *testing.T, data []byte, scale, jump int64) {
		e := New(Config{MaxSamples: 64, Window: 1 << 20})
		at := jump
		data = data[:min(len(data), 3000)]
		for i := 0; i+2 < len(data); i += 3 {
			at += int64(data[i]) * scale
			b := at + (int64(data[i+1])-128)*jump/64
			switch data[i+2] % 4 {
			case 0, 1:
				e.Upper(at, b, int64(data[i+2]))
			case 2:
				e.Lower(at, b, int64(data[i+2]))
			default:
				for _, o := range e.Close(at) {
					requireSane(t, o)
				}
			}
		}
		for _, o := range e.Close(math.MaxInt64) {
			requireSane(t, o)
		}
		if len(e.upper.pending) > 64 || len(e.lower.pending) > 64 {
			t.Fatal("more is pending than may be")
		}
		if len(e.upper.kept) > 64*keptFactor || len(e.lower.kept) > 64*keptFactor {
			t.Fatal("more is kept than may be")
		}
	})
}

func requireSane(t *testing.T, o Estimate) {
	t.Helper()
	if o.From > o.At || o.At > o.Until {
		t.Fatalf("not in order: %+v", o)
	}
	if o.HasLower && o.Lower > o.Offset || o.HasUpper && o.Offset > o.Upper {
		t.Fatalf("the offset is not within its bounds: %+v", o)
	}
	for _, x := range []float64{o.Sigma, o.Drift, o.DriftBound, o.Growth} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Fatalf("not a number: %+v", o)
		}
	}
	lower, upper := o.BoundsAt(o.Until + 1000)
	if lower > upper {
		t.Fatalf("got %d > %d: %+v", lower, upper, o)
	}
}
