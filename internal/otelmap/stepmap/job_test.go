// SPDX-License-Identifier: Apache-2.0

package stepmap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

const ms = int64(time.Millisecond)

var t0 = time.Unix(1_700_000_000, 0)

func now() time.Time { return t0 }

// rankOf is a rank of a job of four.
func rankOf(r int64) model.Rank {
	return model.Rank{JobName: "train", JobID: "job", Incarnation: "inc", Rank: r, WorldSize: model.Some(int64(4)), ClockID: "host:a/b/raw"}
}

// opsOf is one step: compute for the given time, then an all-reduce that ends
// for all 1 ms after 30 ms, then the step itself.
func opsOf(step, compute int64) []model.Op {
	start := t0.UnixNano() + step*100*ms
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

// slowRank2 gives the reports and findings of six steps in which rank 2
// computes for 30 ms and the others for 10.
func slowRank2(t *testing.T, visit func(*model.Rank, []model.Op)) ([]*straggler.StepReport, []model.Finding) {
	t.Helper()
	e := straggler.New(straggler.NewDefaultConfig(), now)
	var reports []*straggler.StepReport
	for step := range int64(6) {
		for r := range int64(4) {
			rank, compute := rankOf(r), 10+r
			if r == 2 {
				compute = 30
			}
			ops := opsOf(step, compute)
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
