// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// typicalOps is a rank's step with one collective in ten operations.
func typicalOps(n int) []model.Op {
	ops := make([]model.Op, n)
	for i := range ops {
		ops[i] = model.Op{
			Kind: model.KindCompute, Name: fmt.Sprint("kernel ", i%50), Seq: int64(i / 50), Step: model.Some(int64(1)),
			Stream: model.Some(int64(7)), Correlation: model.Some(int64(i)), Launch: model.Some(int64(i)), Start: int64(i), End: int64(i + 1),
		}
		if i%10 == 0 {
			ops[i].Kind, ops[i].Name = model.KindCollective, "all_reduce"
			ops[i].Comm = model.Comm{ID: "0x1", Size: model.Some(int64(8)), Rank: model.Some(int64(3))}
			ops[i].Collective = model.Collective{
				Name: model.AllReduce, Seq: model.Some(int64(i)), SeqScope: model.ScopeCommFunc, Bytes: model.Some(int64(1 << 20)), DType: "bfloat16",
			}
		}
	}
	return ops
}

func BenchmarkOpsToTraces(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			ops, rank := typicalOps(n), model.Rank{JobID: "j", Incarnation: "i", Rank: 3}
			b.ReportAllocs()
			for b.Loop() {
				OpsToTraces(&rank, ops)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/span")
		})
	}
}

func BenchmarkTracesToOps(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			td := OpsToTraces(&model.Rank{JobID: "j", Incarnation: "i", Rank: 3}, typicalOps(n))
			b.ReportAllocs()
			for b.Loop() {
				TracesToOps(td)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/span")
		})
	}
}

// BenchmarkReadOps reads 700 operations of each of 8 ranks, from one resource of a rank and from several.
func BenchmarkReadOps(b *testing.B) {
	for _, steps := range []int{1, 5} {
		b.Run(fmt.Sprint("resources=", steps), func(b *testing.B) {
			td := severalSteps(steps, 8, 700/steps)
			b.ReportAllocs()
			for b.Loop() {
				ReadOps(td, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*8*700), "ns/span")
		})
	}
}
