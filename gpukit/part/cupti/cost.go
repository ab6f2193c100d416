// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"errors"
	"fmt"
	"math"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// maxCost is what recording may cost of a step, relative.
const maxCost = 0.01

// errFewPairs is returned for fewer pairs than an interval needs.
var errFewPairs = errors.New("compare times: got fewer than 3 pairs; want more")

// ratio is how much longer steps took than others, with the interval in which it lies
// with 95 %.
type ratio struct{ value, low, high float64 }

// pairedRatio compares pairs of step times, one measured shortly after the other, so
// that what changes slowly falls out.
func pairedRatio(with, without []float64) (ratio, error) {
	n := len(with)
	if n != len(without) {
		return ratio{}, fmt.Errorf("compare times: got %d with and %d without; want as many", n, len(without))
	}
	if n < 3 {
		return ratio{}, errFewPairs
	}
	logs := make([]float64, n)
	for i := range n {
		if with[i] <= 0 || without[i] <= 0 {
			return ratio{}, fmt.Errorf("compare times: got %v and %v ns; want more than 0", with[i], without[i])
		}
		logs[i] = math.Log(with[i] / without[i])
	}
	mean, half := stats.MeanInterval(logs)
	return ratio{math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)}, nil
}

// judge returns the status of a cost: right only where the whole interval is below the
// limit, failed only where all of it is above, neither where other work used the device.
func (r ratio) judge(right report.Status, company string) report.Status {
	switch {
	case company != "":
		return report.NotShown
	case r.low > 1+maxCost:
		return report.Failed
	case r.high > 1+maxCost:
		return report.NotShown
	}
	return right
}

// describe reports by how much something changes the time of a step.
func (r ratio) describe(what string) string {
	text := fmt.Sprintf("%s changes the time of a step by %+.2f %% (95 %%: %+.2f to %+.2f %%)", what, 100*(r.value-1), 100*(r.low-1), 100*(r.high-1))
	if r.low <= 1+maxCost && r.high > 1+maxCost {
		text += fmt.Sprintf("; the limit of %.0f %% lies within, so that this run does not decide", 100*maxCost)
	}
	return text
}

func (r ratio) figures() []report.Figure {
	return []report.Figure{
		{Name: "cost", Value: 100 * (r.value - 1), Unit: "%"},
		{Name: "cost, low end", Value: 100 * (r.low - 1), Unit: "%"},
		{Name: "cost, high end", Value: 100 * (r.high - 1), Unit: "%"},
	}
}

// blockPairs returns the medians of neighbouring blocks, recording (A) and paused (B).
func blockPairs(blocks []block) (with, without []float64, err error) {
	if len(blocks)%2 != 0 {
		return nil, nil, fmt.Errorf("compare blocks: got %d blocks; want pairs", len(blocks))
	}
	for i := 0; i < len(blocks); i += 2 {
		a, b := blocks[i], blocks[i+1]
		if a.Kind == "B" {
			a, b = b, a
		}
		if a.Kind != "A" || b.Kind != "B" {
			return nil, nil, fmt.Errorf("compare blocks: pair %d is of kinds %s and %s; want A and B", i/2+1, a.Kind, b.Kind)
		}
		if len(a.Took) == 0 || len(a.Took) != len(b.Took) {
			return nil, nil, fmt.Errorf("compare blocks: pair %d has %d and %d steps; want as many, and one at least", i/2+1, len(a.Took), len(b.Took))
		}
		with, without = append(with, stats.MedianOf(a.Took)), append(without, stats.MedianOf(b.Took))
	}
	return with, without, nil
}

// refused returns the calls among the blocks that did not do as asked.
func refused(blocks []block) int {
	n := 0
	for _, b := range blocks {
		if b.Code != 0 {
			n++
		}
	}
	return n
}

// obeyed tests that the ring has kernels of every block that recorded, and none of those
// that were paused: without that the blocks compare nothing.
func (r *record) obeyed(blocks []block) error {
	for i, b := range blocks {
		_, inside := r.window(b.Begin, b.End)
		switch {
		case b.Kind == "A" && len(inside) == 0:
			return fmt.Errorf("compare blocks: got no kernel in the ring from block %d, which recorded; want some", i+1)
		case b.Kind == "B" && len(inside) > 0:
			return fmt.Errorf("compare blocks: got %d kernels in the ring from block %d, which was paused; want none", len(inside), i+1)
		}
	}
	return nil
}

func mediansOf(turns [][]float64) []float64 {
	out := make([]float64, len(turns))
	for i, t := range turns {
		out[i] = stats.MedianOf(t)
	}
	return out
}
