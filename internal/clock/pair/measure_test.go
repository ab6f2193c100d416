// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// measured is how far estimates were from the truth, in ns, and how wide their
// bounds.
type measured struct {
	errors, halves, drifts, sigmas []float64
	minRTT, midrange               []float64 // errors of simpler estimates on the same exchanges
	outside                        int
}

// measure runs pairs whose drift stays as it is, for two minutes each.
func measure(rate float64, delay func(*rand.Rand) int64, seeds uint64) (m measured) {
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 7))
		tr := &truth{base: 3_700_000, origin: origin, changes: []change{{origin, 20e-6, 0}}}
		var w simple
		tr.saw = w.take
		tr.probes(r, New(Config{}), rate, origin, origin+120*second, delay, func(closed int64, out []Estimate) {
			if w.n > 0 {
				a, b := w.estimates()
				m.minRTT = append(m.minRTT, math.Abs(float64(a-tr.offset(w.at))))
				m.midrange = append(m.midrange, math.Abs(float64(b-tr.offset(closed-second))))
			}
			w = simple{}
			for _, o := range out {
				m.add(tr, o)
			}
		})
	}
	return m
}

func (tr *truth) offset(t int64) int64 { return tr.base + int64(math.Round(tr.rel(t))) }

func (m *measured) add(tr *truth, o Estimate) {
	if o.Provisional {
		return
	}
	if tr.outside(o, o.At) > 0 {
		m.outside++
	}
	m.errors = append(m.errors, math.Abs(float64(o.Offset-tr.offset(o.At))))
	m.halves = append(m.halves, (float64(o.Upper)-float64(o.Lower))/2)
	m.drifts = append(m.drifts, math.Abs(o.Drift-tr.driftAt(o.At)))
	m.sigmas = append(m.sigmas, o.Sigma)
}

// simple keeps of one window what simpler estimates need: the exchange with the
// shortest round trip (Cristian), and the extremes of both directions.
type simple struct {
	n, at            int64
	rtt, best        int64
	lowest, greatest int64
}

func (w *simple) take(t, upper, lower int64) {
	if w.n == 0 || upper-lower < w.rtt {
		w.rtt, w.best, w.at = upper-lower, lower+(upper-lower)/2, t
	}
	if w.n == 0 {
		w.lowest, w.greatest = upper, lower
	}
	w.lowest, w.greatest = min(w.lowest, upper), max(w.greatest, lower)
	w.n++
}

// estimates are the one at the exchange w.at, and the one at the window's middle.
func (w *simple) estimates() (minRTT, midrange int64) {
	return w.best, w.greatest + (w.lowest-w.greatest)/2
}

// BenchmarkError prints errors beside those of simpler estimates on the same
// exchanges: go test -run xx -bench Error -benchtime 1x ./internal/clock/pair
func BenchmarkError(b *testing.B) {
	for _, d := range delays {
		for _, rate := range []float64{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%v_per_s", d.name, rate), func(b *testing.B) {
				var m measured
				for b.Loop() {
					m = measure(rate, d.delay, runsOf(rate))
				}
				b.ReportMetric(quantile(m.errors, 0.5), "ns_p50")
				b.ReportMetric(quantile(m.errors, 0.99), "ns_p99")
				b.ReportMetric(quantile(m.errors, 1), "ns_max")
				b.ReportMetric(quantile(m.halves, 0.5), "ns_bound")
				b.ReportMetric(1e6*quantile(m.drifts, 0.99), "ppm_p99")
				b.ReportMetric(quantile(m.minRTT, 0.99), "ns_p99_minrtt")
				b.ReportMetric(quantile(m.midrange, 0.99), "ns_p99_midrange")
				b.ReportMetric(float64(m.outside), "outside")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// traffic is what a trace shows of two services, by stamps of the programs.
type traffic struct {
	name     string
	there    float64 // messages a second from Src to Dst
	back     float64 // and the other way
	calls    float64 // calls a second, answered after some milliseconds
	twoSided bool
}

var traces = []traffic{
	{"calls", 0, 0, 20, true},
	{"messages both ways", 20, 20, 0, true},
	{"messages one way", 20, 0, 0, false},
	{"few calls", 0, 0, 0.5, true},
}

// feed gives the estimator the traffic of one minute, and returns what an estimate
// that knew the drift could bound the offset to: half of the soonest message there
// and the soonest back.
func (f traffic) feed(r *rand.Rand, tr *truth, e *Estimator, window func([]Estimate)) (best float64) {
	there, back := int64(math.MaxInt64), int64(math.MaxInt64)
	send := func(t int64) int64 {
		d := application(r)
		there = min(there, d)
		e.Upper(t, tr.dst(t+d), 0)
		return t + d
	}
	answer := func(t int64) {
		d := application(r)
		back = min(back, d)
		e.Lower(t+d, tr.dst(t), 0)
	}
	for t := origin; t < origin+60*second; t += second / 100 {
		if r.Float64() < f.there/100 {
			send(t + r.Int64N(second/100))
		}
		if r.Float64() < f.back/100 {
			answer(t + r.Int64N(second/100))
		}
		if r.Float64() < f.calls/100 {
			answer(send(t+r.Int64N(second/100)) + 1_000_000 + r.Int64N(10_000_000))
		}
		if t%(2*second) == 0 && t > origin {
			window(e.Close(t))
		}
	}
	return float64(there)/2 + float64(back)/2
}

// Traces alone, without any probe, give bounds that hold, and estimates far inside
// of what can be bound at all.
func TestTracesAlone(t *testing.T) {
	for _, f := range traces {
		t.Run(f.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(11, 1))
			tr := &truth{base: -12_345_678, origin: origin, changes: []change{{origin, -35e-6, 0}}}
			var m measured
			n := 0
			best := f.feed(r, tr, New(Config{}), func(out []Estimate) {
				for _, o := range out {
					n++
					assert.Equal(t, f.twoSided, o.HasLower && o.HasUpper)
					for _, at := range []int64{o.From, o.At, o.Until} {
						require.Zero(t, tr.outside(o, at), "%+v", o)
					}
					if f.twoSided {
						m.add(tr, o)
					}
				}
			})
			require.Greater(t, n, 5)
			if f.twoSided && f.calls != 0.5 {
				assert.LessOrEqual(t, quantile(m.errors, 0.99), best, "within the bound of who knows the drift")
			}
		})
	}
}

// BenchmarkTracesAlone prints the error and the bound of traces, beside the bound of
// an estimate that knew the drift and had the whole minute.
func BenchmarkTracesAlone(b *testing.B) {
	for _, window := range []time.Duration{2 * time.Second, 8 * time.Second} {
		for _, f := range traces {
			b.Run(fmt.Sprintf("%s/%v", f.name, window), func(b *testing.B) {
				for b.Loop() {
					f.report(b, Config{Window: window})
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

func (f traffic) report(b *testing.B, cfg Config) {
	b.Helper()
	var m measured
	var best, over []float64
	for seed := range uint64(20) {
		tr := &truth{base: -12_345_678, origin: origin, changes: []change{{origin, -35e-6, 0}}}
		best = append(best, f.feed(rand.New(rand.NewPCG(seed, 1)), tr, New(cfg), func(out []Estimate) {
			for _, o := range out {
				if f.twoSided {
					m.add(tr, o)
				} else {
					over = append(over, float64(o.Upper-tr.offset(o.At)))
				}
			}
		}))
	}
	if !f.twoSided {
		b.ReportMetric(quantile(over, 0.5), "ns_upper_p50")
		return
	}
	b.ReportMetric(quantile(m.errors, 0.5), "ns_p50")
	b.ReportMetric(quantile(m.errors, 0.99), "ns_p99")
	b.ReportMetric(quantile(m.halves, 0.5), "ns_bound")
	b.ReportMetric(quantile(best, 0.5), "ns_theory")
	b.ReportMetric(float64(m.outside), "outside")
}
