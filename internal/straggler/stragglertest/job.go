// SPDX-License-Identifier: Apache-2.0

// Package stragglertest makes the operations of a small job for tests of what uses the straggler engine.
package stragglertest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

const ms = int64(time.Millisecond)

// Start is the time at which the job's step 0 starts.
var Start = time.Unix(1_700_000_000, 0)

// Now returns Start: a clock that stands still.
func Now() time.Time { return Start }

// Rank returns a rank of a job of four.
func Rank(r int64) model.Rank {
	return model.Rank{JobName: "train", JobID: "job", Incarnation: "inc", Rank: r, WorldSize: model.Some(int64(4)), ClockID: "host:a/b/raw"}
}

// Ops returns one step of a rank: compute for the given milliseconds, then an all-reduce that ends
// on all ranks 31 ms after the start of the step, then the step itself. Steps start 100 ms apart.
func Ops(step, compute int64) []model.Op {
	start := Start.UnixNano() + step*100*ms
	at := func(op model.Op, from, to int64) model.Op {
		op.Start, op.End, op.Step = start+from*ms, start+to*ms, model.Some(step)
		return op
	}
	return []model.Op{
		at(model.Op{Kind: model.KindCompute, Name: "gemm", Stream: model.Some(int64(7))}, 0, compute),
		at(model.Op{
			Kind: model.KindCollective, Name: "all_reduce", Stream: model.Some(int64(20)), Comm: model.Comm{ID: "c", Size: model.Some(int64(4))},
			Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(step), SeqScope: model.ScopeCommFunc},
		}, compute, 31),
		at(model.Op{Kind: model.KindStep, Name: "step", Phase: "train"}, 0, 31),
	}
}

// SlowRank2 returns the reports and the finding of six steps in which rank 2 computes for 30 ms, and
// ranks 0, 1 and 3 for 10, 11 and 13 ms. It shows all operations to visit first.
func SlowRank2(t *testing.T, visit func(*model.Rank, []model.Op)) ([]*straggler.StepReport, []model.Finding) {
	t.Helper()
	e := straggler.New(straggler.NewDefaultConfig(), Now)
	var reports []*straggler.StepReport
	for step := range int64(6) {
		for r := range int64(4) {
			rank, compute := Rank(r), 10+r
			if r == 2 {
				compute = 30
			}
			ops := Ops(step, compute)
			visit(&rank, ops)
			reports = append(reports, e.Add(rank, ops)...)
		}
	}
	require.Len(t, reports, 6)
	var findings []model.Finding
	for _, v := range e.Verdicts() {
		findings = append(findings, v.Finding)
	}
	require.Len(t, findings, 1)
	require.Equal(t, model.Some(int64(2)), findings[0].Rank)
	return reports, findings
}
