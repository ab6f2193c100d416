// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"testing"
)

// BenchmarkJob prints how long it takes to simulate an operation, and to hand it on.
func BenchmarkJob(b *testing.B) {
	for _, n := range []int{64, 1024} {
		for _, handed := range []bool{false, true} {
			b.Run(fmt.Sprintf("ranks=%d/handed=%t", n, handed), func(b *testing.B) {
				j, err := New(Spec{Name: "bench", Layout: Layout{DP: n}, Noise: DefaultNoise(), Steps: maxSteps}, 1)
				if err != nil {
					b.Fatal(err)
				}
				ops := 0
				b.ReportAllocs()
				for b.Loop() {
					s, _ := j.Next()
					for r := range n {
						if !handed {
							ops += len(j.programs[0].items)
							continue
						}
						ops += len(s.Ops(r))
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(ops), "ns/operation")
			})
		}
	}
}
