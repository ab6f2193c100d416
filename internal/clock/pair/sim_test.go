// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/stats"
)

const second = int64(1_000_000_000)

// change sets the relative frequency from a reading of Src on, and steps the offset.
type change struct {
	t     int64
	drift float64
	step  int64
}

// truth is an offset of known course. Src reads true time.
type truth struct {
	base    int64 // offset at origin
	origin  int64
	changes []change // by t; the first at or before origin
	// saw, if set, is told of each exchange: when it began, and what it says.
	saw func(t, upper, lower int64)
}

// rel is the offset less base.
func (tr *truth) rel(t int64) float64 {
	y, at, drift := 0.0, tr.origin, 0.0
	for _, c := range tr.changes {
		if c.t > t {
			break
		}
		if c.t > at {
			y += drift * float64(c.t-at)
			at = c.t
		}
		drift = c.drift
		y += float64(c.step)
	}
	return y + drift*float64(t-at)
}

func (tr *truth) driftAt(t int64) (d float64) {
	for _, c := range tr.changes {
		if c.t <= t {
			d = c.drift
		}
	}
	return d
}

// dst is what Dst reads when Src reads t.
func (tr *truth) dst(t int64) int64 { return t + tr.base + int64(math.Round(tr.rel(t))) }

// veth are delays as measured between two network namespaces: at least 0.18 us,
// half within 0.43, 99 % within 5.8, 99.9 % within 15.
func veth(r *rand.Rand) int64 { return 180 + int64(250*math.Exp(1.337*r.NormFloat64())) }

// busy is the same with both cores at work: 99 % within 9.3 us.
func busy(r *rand.Rand) int64 { return 180 + int64(280*math.Exp(1.5*r.NormFloat64())) }

// clos are six queues at 80 % load in a row, each full of packets of 1,500 bytes at
// 100 Gbit/s: exponential waits behind the fifth that find none.
func clos(r *rand.Rand) int64 {
	d := 3000.0
	for range 6 {
		if r.Float64() < 0.8 {
			d += r.ExpFloat64() * 600
		}
	}
	return int64(d)
}

// application are stamps of programs: some 30 us, and milliseconds where the
// program was not running.
func application(r *rand.Rand) int64 {
	d := 20_000 + int64(10_000*r.ExpFloat64())
	if r.Float64() < 0.005 {
		d += int64(2e6 * r.ExpFloat64())
	}
	return d
}

// probes feeds exchanges at a rate from one reading to another, and calls close at
// the end of each window.
func (tr *truth) probes(r *rand.Rand, e *Estimator, rate float64, from, until int64, delay func(*rand.Rand) int64, window func(closed int64, out []Estimate)) {
	interval := float64(second) / rate
	closing := from - from%int64(e.cfg.Window) + int64(e.cfg.Window)
	for n := 0; ; n++ {
		t := from + int64((float64(n)+0.2*r.Float64())*interval)
		for ; t >= closing; closing += int64(e.cfg.Window) {
			window(closing, e.Close(closing))
		}
		if t >= until {
			return
		}
		there := t + delay(r)
		e.Upper(t, tr.dst(there), 0)
		back := there + 20_000
		home := back + delay(r)
		e.Lower(home, tr.dst(back), 0)
		if tr.saw != nil {
			tr.saw(t, tr.dst(there)-t, tr.dst(back)-home)
		}
	}
}

func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	return stats.QuantileHigh(slices.Sorted(slices.Values(v)), q)
}
