// SPDX-License-Identifier: Apache-2.0

package ks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
)

// job is a shape of many workers.
type job struct {
	name string
	make func(rng *rand.Rand, worker int) pace
}

// jobs are what the bounds find easy, and hard.
var jobs = []job{
	// All alike but for 8; a pace of its own for each, and 8 slower still; rhythms that
	// wander widely, and 8 that stand out.
	{"tight", func(_ *rand.Rand, i int) pace { return pace{slow: standsOut(i), drift: 0.0015} }},
	{"pace", func(rng *rand.Rand, i int) pace {
		return pace{slow: standsOut(i) * (1 + 0.05*rng.NormFloat64()), drift: 0.0015}
	}},
	{"noise", func(_ *rand.Rand, i int) pace { return pace{slow: standsOut(i), drift: 0.03} }},
	// Nobody stands out: of rhythms that wander widely, or meet at a barrier in each
	// window; of two equal clusters; and where cells have 33 values and differences tie.
	{"nobody", func(*rand.Rand, int) pace { return pace{slow: 1, drift: 0.03} }},
	{"barrier", func(*rand.Rand, int) pace { return pace{slow: 1, jitter: 0.0015} }},
	{"clusters", func(_ *rand.Rand, i int) pace { return pace{slow: 1 + 0.15*float64(i%2), drift: 0.03} }},
	{"ties", func(*rand.Rand, int) pace { return pace{slow: 1, drift: 0.03, ops: 32} }},
}

const benched = 16384

// standsOut makes 8 workers slower.
func standsOut(worker int) float64 {
	if worker%(benched/8) == 7 {
		return 1.3
	}
	return 1
}

// BenchmarkTopK finds the top 8 of each job. ms is the CPU time of a call, its table's
// making and garbage collection too; ratio how many times longer all pairs would take,
// going by those of 2,048 workers.
func BenchmarkTopK(b *testing.B) {
	const sample, windows, top = 2048, 128, 8
	for _, job := range jobs {
		b.Run(job.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(5, 6))
			counts := make([]uint32, 0, benched*windows)
			for i := range benched {
				counts = append(counts, job.make(rng, i).counts(rng, windows)...)
			}
			began := cpu()
			Normalised(counts[:sample*windows], windows).Pairwise()
			pairs := (cpu() - began) * (benched / sample) * (benched / sample)
			began = cpu()
			var effort Effort
			for b.Loop() {
				_, effort = Normalised(counts, windows).TopK(top)
			}
			ms := (cpu() - began) / float64(b.N)
			b.ReportMetric(ms, "ms")
			b.ReportMetric(pairs/ms, "ratio")
			b.ReportMetric(float64(effort.Scored), "scored")
			b.ReportMetric(float64(effort.Abandoned), "abandoned")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPairwise computes all pairs. Time grows with the square of the workers:
// ms-16384 is what that makes of 16,384.
func BenchmarkPairwise(b *testing.B) {
	for _, workers := range []int{2048, benched} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			if workers > 2048 && testing.Short() {
				b.Skip("all pairs of 16,384 workers are left out of a short run")
			}
			rng := rand.New(rand.NewPCG(5, 6))
			table := Normalised(healthy(rng, workers, 128, 0.0015), 128)
			began := cpu()
			for b.Loop() {
				table.Pairwise()
			}
			ms := (cpu() - began) / float64(b.N)
			b.ReportMetric(ms, "ms")
			if workers < benched {
				b.ReportMetric(ms*math.Pow(benched/float64(workers), 2), "ms-16384")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// cpu returns what the process has taken of processors, ms.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}
