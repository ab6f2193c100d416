// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// farthest bounds readings and offsets in ns, so that sums of two stay within
// int64: 146 years from either side of 1970.
const farthest = math.MaxInt64 / 2

// Counters count what Add and Solve did, from the beginning.
type Counters struct {
	Added    int64 // edges taken, those that replaced another included
	Replaced int64
	// Late edges were older than the one that was held for the same clocks and
	// source, and left out.
	Late int64

	// Refused edges, by reason.
	LowerAboveUpper  int64
	Contradicted     int64 // edges that contradict themselves: evidence, and no more
	OutsideBounds    int64 // the estimate
	NotANumber       int64
	SelfEdge         int64
	Unnamed          int64
	UnknownSource    int64
	UnknownStamps    int64
	OutOfRange       int64
	Empty            int64 // neither a bound nor an estimate
	TooManyClocks    int64
	TooManyEdges     int64
	Forgotten        int64 // edges that grew older than the horizon, or were from before a step
	FormerLives      int64 // of these, the latter
	Unsettled        int64 // solutions whose bounds took too long, and were left out
	CutShort         int64 // solutions that MaxWork ended: estimates may be off by more, within their bounds
	Contradictions   int64 // pairs of clocks that contradicted one another, summed over solutions
	PathsOverflowed  int64 // paths that Between did not search to their end, for want of MaxFollowed
	CrossingOverflow int64 // pairs whose bounds crossed and that could not be remembered
	AfarOverflow     int64 // clocks and pairs whose offsets contradict others, or that may have been set, and that could not be
}

// sources numbers the sources of edges; two edges of the same clocks and source
// replace one another.
var sources = map[string]uint8{
	model.EdgeProbe: 0, model.EdgePair: 1, model.EdgeMessage: 2, model.EdgeCall: 3,
	model.EdgeCollective: 4, model.EdgeChrony: 5, model.EdgePTP: 6,
}

// sourceCount is how many sources there are.
const sourceCount = 7

var stamps = map[string]bool{
	model.StampHardware: true, model.StampKernel: true, model.StampUser: true, model.StampApplication: true,
}

// Check refuses an edge as Solver.Add does, but for the limits of a Solver.
func Check(e *model.ClockEdge) error {
	var c Counters
	return c.check(e)
}

// check refuses what no solution could use, and counts it.
func (c *Counters) check(e *model.ClockEdge) error {
	if err := c.checkNames(e); err != nil {
		return err
	}
	if err := c.checkNumbers(e); err != nil {
		return err
	}
	return c.checkBounds(e)
}

func (c *Counters) checkNames(e *model.ClockEdge) error {
	if e.Src == "" || e.Dst == "" {
		c.Unnamed++
		return fmt.Errorf("add clock edge: src %q, dst %q: got an empty clock id; want two", e.Src, e.Dst)
	}
	if e.Src == e.Dst {
		c.SelfEdge++
		return fmt.Errorf("add clock edge: src and dst: got %q twice; want two clocks", e.Src)
	}
	if _, ok := sources[e.Source]; !ok {
		c.UnknownSource++
		return fmt.Errorf("add clock edge %s to %s: source: got %q; want probe, pair, message, call, collective, chrony or ptp", e.Src, e.Dst, e.Source)
	}
	if !stamps[e.Stamps] {
		c.UnknownStamps++
		return fmt.Errorf("add clock edge %s to %s: stamps: got %q; want hardware, kernel, user or application", e.Src, e.Dst, e.Stamps)
	}
	return nil
}

func (c *Counters) checkNumbers(e *model.ClockEdge) error {
	for _, f := range []struct {
		field string
		v     float64
		most  float64
	}{
		{"sigma", e.Sigma, farthest}, {"drift bound", e.DriftBound, 1}, {"drift", math.Abs(e.Drift), 0.5},
	} {
		// Written so that NaN fails.
		if !(f.v >= 0 && f.v <= f.most) {
			c.NotANumber++
			return fmt.Errorf("add clock edge %s to %s: %s: got %v; want 0 to %g", e.Src, e.Dst, f.field, f.v, f.most)
		}
	}
	for _, f := range []struct {
		field string
		v     int64
		ok    bool
	}{
		{"at", e.At, near(e.At)},
		{"offset", e.Offset, near(e.Offset)},
		{"span", e.Span, e.Span >= 0 && near(e.Span)},
		{"samples", e.Samples, e.Samples >= 0},
		{"contradicted", e.Contradicted, e.Contradicted >= 0 && near(e.Contradicted)},
		{"lower", e.Lower, e.Lower == model.NoLower || near(e.Lower)},
		{"upper", e.Upper, e.Upper == model.NoUpper || near(e.Upper)},
	} {
		if !f.ok {
			c.OutOfRange++
			return fmt.Errorf("add clock edge %s to %s: %s: got %d ns; want at most %d", e.Src, e.Dst, f.field, f.v, int64(farthest))
		}
	}
	return nil
}

func near(v int64) bool { return v >= -farthest && v <= farthest }

func (c *Counters) checkBounds(e *model.ClockEdge) error {
	if e.Lower > e.Upper {
		c.LowerAboveUpper++
		return fmt.Errorf("add clock edge %s to %s: lower bound above the upper: got %d and %d ns; want lower <= upper", e.Src, e.Dst, e.Lower, e.Upper)
	}
	if e.Sigma > 0 && (e.Offset < e.Lower || e.Offset > e.Upper) {
		c.OutsideBounds++
		return fmt.Errorf("add clock edge %s to %s: offset: got %d ns; want %d to %d, its own bounds", e.Src, e.Dst, e.Offset, e.Lower, e.Upper)
	}
	if e.Sigma == 0 && e.Lower == model.NoLower && e.Upper == model.NoUpper {
		c.Empty++
		return fmt.Errorf("add clock edge %s to %s: got neither a bound nor an estimate; want one", e.Src, e.Dst)
	}
	return nil
}
