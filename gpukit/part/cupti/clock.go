// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"math"
	"slices"
	"sort"

	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// bracketed is what stamps of the host around single kernels show of CUPTI's clock.
type bracketed struct {
	kernels int // that lie in a bracket
	missing int // brackets without their kernel
	outside int // kernels that began before their call or ended after the host saw them
	// worst is by how much, ns; bound the largest that the readings of the clock allow.
	worst, bound int64
	// tightest is the half width of the narrowest bracket, ns: how far the clock may
	// be off at most.
	tightest float64
}

// checkBrackets finds the kernel of each bracket: the one that was launched in it.
func checkBrackets(kernels []kernel, brackets [][2]uint64) bracketed {
	var b bracketed
	launched := slices.DeleteFunc(slices.Clone(kernels), func(k kernel) bool { return !k.placed || !k.Launched || k.Copy || k.Set })
	sort.Slice(launched, func(i, j int) bool { return launched[i].launch < launched[j].launch })
	for _, at := range brackets {
		i := sort.Search(len(launched), func(i int) bool { return launched[i].launch+launched[i].bound >= at[0] })
		if i == len(launched) || launched[i].launch > at[1] {
			b.missing++
			continue
		}
		b.take(launched[i], at)
	}
	return b
}

func (b *bracketed) take(k kernel, at [2]uint64) {
	b.kernels++
	off := max(int64(at[0]-k.start), int64(k.launch-k.start), int64(k.end-at[1]))
	if off > int64(k.bound) {
		b.outside++
	}
	b.worst = max(b.worst, off)
	b.bound = max(b.bound, int64(k.bound))
	half := (float64(at[1]-at[0]) - float64(k.end-k.start)) / 2
	if half >= 0 && (b.tightest == 0 || half < b.tightest) {
		b.tightest = half
	}
}

// clockDrift is how CUPTI's clock went beside the host's.
type clockDrift struct {
	readings int
	seconds  float64
	// rate is by how much CUPTI's clock gains on MONOTONIC_RAW, ppm; against REALTIME,
	// offsets are in ns: the first reading's, the last one's, the largest of all by
	// size, and the largest change.
	rate, realtimeRate float64
	first, last        float64
	furthest, widest   float64
	width              float64 // of a reading, the median
}

func driftOf(clocks []ring.Clock) clockDrift {
	clocks = slices.Clone(clocks)
	slices.SortFunc(clocks, func(a, b ring.Clock) int { return int(int64(a.Raw - b.Raw)) })
	d := clockDrift{readings: len(clocks)}
	if len(clocks) < 2 {
		return d
	}
	a, z := clocks[0], clocks[len(clocks)-1]
	span := float64(z.Raw - a.Raw)
	d.seconds = span / 1e9
	d.rate = (float64(int64(z.CUPTI-a.CUPTI))/span - 1) * 1e6
	d.realtimeRate = (float64(int64(z.Realtime-a.Realtime))/span - 1) * 1e6
	least, most := math.Inf(1), math.Inf(-1)
	var widths []float64
	for _, c := range clocks {
		off := float64(int64(c.CUPTI - c.Realtime))
		least, most = min(least, off), max(most, off)
		widths = append(widths, float64(c.Width))
	}
	d.first, d.last = float64(int64(a.CUPTI-a.Realtime)), float64(int64(z.CUPTI-z.Realtime))
	d.furthest, d.widest, d.width = max(math.Abs(least), math.Abs(most)), most-least, stats.MedianOf(widths)
	return d
}

// maxRate is how far CUPTI's clock may run from the host's, ppm: crystals drift by
// less. A counter of ticks is beyond it.
const maxRate = 1000

// nanoseconds reports whether the clock counts them.
func (d clockDrift) nanoseconds() bool { return d.readings < 2 || math.Abs(d.rate) < maxRate }

// ticks returns the rate of a clock between neighbouring readings, ticks per ns, of
// the part in which it is furthest from 1.
func ticks(clocks []ring.Clock) float64 {
	clocks = slices.Clone(clocks)
	slices.SortFunc(clocks, func(a, b ring.Clock) int { return int(int64(a.Raw - b.Raw)) })
	furthest := 1.0
	for i := 1; i < len(clocks); i++ {
		a, b := clocks[i-1], clocks[i]
		if b.Raw-a.Raw < 100_000_000 || b.CUPTI < a.CUPTI {
			continue
		}
		rate := float64(b.CUPTI-a.CUPTI) / float64(b.Raw-a.Raw)
		if rate < 100 && math.Abs(rate-1) > math.Abs(furthest-1) {
			furthest = rate
		}
	}
	return furthest
}
