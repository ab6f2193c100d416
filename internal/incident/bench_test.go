// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// A step of many ranks that all meet in every collective.
func BenchmarkSelectStory(b *testing.B) {
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
				SelectStory(&w.StepReport, nil, nil, DefaultStorySpans)
			}
		})
	}
}

// Findings that all touch one another are the dearest to join.
func BenchmarkAdd(b *testing.B) {
	e := NewEngine(NewDefaultConfig())
	now := time.Now()
	i := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		f := received(fmt.Sprint("f", i), 1, i, i, i+10)
		f.CommID, f.StepLast = "world", model.Some(i)
		e.Add(f, now)
		i++
	}
}
