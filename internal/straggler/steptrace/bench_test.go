// SPDX-License-Identifier: Apache-2.0

package steptrace

import (
	"fmt"
	"testing"
)

// A step of many ranks that all meet in every collective.
func BenchmarkSelect(b *testing.B) {
	const meetings = 50
	for _, ranks := range []int{8, 1024, 16384} {
		b.Run(fmt.Sprintf("%d ranks", ranks), func(b *testing.B) {
			w := newWorld(ranks)
			for seq := range int64(meetings) {
				arrivals := make([]arrival, ranks)
				for r := range arrivals {
					arrivals[r] = arrival{(int64(r) + seq) % int64(ranks), seq*1_000_000 + int64(r)}
				}
				w.meet(seq, arrivals...)
			}
			b.ReportAllocs()
			for b.Loop() {
				Select(&w.StepReport, nil, nil, DefaultSpans)
			}
		})
	}
}
