// SPDX-License-Identifier: Apache-2.0

package part

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// ncclTimes is what the kernel times of one rank came to.
type ncclTimes struct {
	Kernels  int
	BoundNS  float64 // half width of where the GPU's clock is
	LongNS   float64 // median kernel
	Problems []string
}

// kernelTimes tests whether there is one relation of the GPU's clock to the host's under
// which every kernel ran between the call and the end that the program saw.
func kernelTimes(pairs []ncclPair, rank int) ncclTimes {
	var t ncclTimes
	var fit gpuclock.Fit
	var long []uint64
	pairs = slices.DeleteFunc(slices.Clone(pairs), func(p ncclPair) bool { return p.Rank != rank || !p.Record.has(ring.FlagKernel) })
	slices.SortStableFunc(pairs, func(a, b ncclPair) int { return cmp.Compare(a.Op.After, b.Op.After) })
	for _, p := range pairs {
		before := fit.Stats()
		fit.Add(p.Op.Before, p.Record.KernelStart, p.Record.KernelStop, p.Op.After)
		fit.Refit()
		if after := fit.Stats(); after.Resets > before.Resets || after.Refused > before.Refused {
			t.Problems = append(t.Problems, fmt.Sprintf("rank %d: the kernel of %v, %.3f ms long, cannot be within its call of %.3f ms", rank, p.Op,
				ms(p.Record.KernelStop, p.Record.KernelStart), ms(p.Op.After, p.Op.Before)))
		}
		long = append(long, p.Record.KernelStop-p.Record.KernelStart)
	}
	t.Kernels = len(pairs)
	if len(pairs) == 0 {
		return t
	}
	if !fit.Ready() || fit.Unit() != gpuclock.UnitNanoseconds {
		t.Problems = append(t.Problems, fmt.Sprintf("rank %d: got a GPU clock in %v after %d kernels, the last stamp being %d; want ns", rank, fit.Unit(), len(pairs), pairs[len(pairs)-1].Record.KernelStop))
		return t
	}
	slices.Sort(long)
	t.BoundNS, t.LongNS = fit.Bound(pairs[len(pairs)-1].Record.KernelStop), float64(stats.MedianHigh(long))
	return t
}

// lateRank returns the rank that came last to the operation before which a rank slept,
// and how much later than the second last it came, ns.
func lateRank(v *ncclVerdict) (rank int, gap uint64, err error) {
	type arrival struct {
		rank int
		at   uint64
	}
	var list []arrival
	for _, p := range v.Pairs {
		if p.Op.Phase == ncclLate {
			list = append(list, arrival{p.Rank, p.Record.Order})
		}
	}
	if len(list) != v.Ranks || v.Ranks < 2 {
		return 0, 0, fmt.Errorf("find the last arriver: got the operation on %d of %d ranks; want all, and two at least", len(list), v.Ranks)
	}
	slices.SortFunc(list, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	last := list[len(list)-1]
	return last.rank, last.at - list[len(list)-2].at, nil
}
