package straggler

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// BenchmarkStep analyses one step of 32 collectives and 320 kernels a rank, and
// judges the window.
func BenchmarkStep(b *testing.B) {
	for _, ranks := range []int64{8, 64, 512} {
		b.Run(fmt.Sprintf("ranks=%d", ranks), func(b *testing.B) {
			b.ReportAllocs()
			e := New(NewDefaultConfig(), time.Now)
			ops := 0
			for n := int64(0); b.Loop(); n++ {
				for r := range ranks {
					step := benchStep(r, n, ranks)
					ops += len(step)
					e.Add(model.Rank{JobID: "job", Incarnation: "life", Rank: r, WorldSize: model.Some(ranks), ClockID: fmt.Sprint(r)}, step)
				}
				e.Verdicts()
			}
			b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

func benchStep(rank, n, ranks int64) []model.Op {
	var ops []model.Op
	at := float64(n) * 100
	begin := at
	for k := range int64(32) {
		for i := range int64(10) {
			ops = append(ops, model.Op{
				Kind: model.KindCompute, Name: "gemm", Seq: k*10 + i, Step: model.Some(n), Stream: model.Some(int64(7)),
				Start: nanos(at), End: nanos(at + 0.2),
			})
			at += 0.2
		}
		c := collective(n, k, 1024, at+float64((rank*7+k)%5)*0.01, at+0.5)
		c.Comm.Size = model.Some(ranks)
		ops = append(ops, c)
		at += 0.5
	}
	return append(ops, stepOp(n, begin, at))
}
