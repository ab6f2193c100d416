// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// synthetic is a data-parallel job: in every step each rank computes, then all
// meet in one all-reduce.
type synthetic struct {
	ranks, steps int64
	slow         int64 // the slow rank; -1 for none
	skip         int64 // a rank that is not recorded; -1 for none
}

const (
	ms = int64(1_000_000)
	// Of the synthetic steps, ns.
	stepTime     = 40 * ms
	computeTime  = 10 * ms
	slowExtra    = 8 * ms
	transferTime = 1 * ms
	firstStep    = int64(1_700_000_000_000_000_000)
)

// jitter makes ranks and steps differ by some microseconds, as real ones do.
func jitter(rank, step int64) int64 { return (rank*7919 + step*104729) % 20_000 }

func (s synthetic) compute(rank, step int64) int64 {
	d := computeTime + jitter(rank, step)
	if rank == s.slow {
		d += slowExtra
	}
	return d
}

func (s synthetic) rank(rank int64) model.Rank {
	return model.Rank{
		JobName: "synthetic", JobID: "synthetic", Incarnation: "0123456789abcdef",
		Rank: rank, WorldSize: model.Some(s.ranks), HostName: "node0", ClockID: "host:node0/boot/realtime",
	}
}

func (s synthetic) ops(rank, step int64) []model.Op {
	start := firstStep + step*stepTime
	var last int64
	for r := range s.ranks {
		last = max(last, start+s.compute(r, step))
	}
	arrive := start + s.compute(rank, step)
	base := model.Op{Step: model.Some(step), Stream: model.Some(int64(7))}
	compute, meet, whole := base, base, base
	compute.Kind, compute.Name, compute.Start, compute.End = model.KindCompute, "gemm", start, arrive
	meet.Kind, meet.Name, meet.Start, meet.End = model.KindCollective, "all_reduce", arrive, last+transferTime
	meet.Comm = model.Comm{ID: "world", Size: model.Some(s.ranks)}
	meet.Collective = model.Collective{
		Name: model.AllReduce, Seq: model.Some(step), SeqScope: model.ScopeComm, Bytes: model.Some(int64(1 << 20)),
	}
	whole.Kind, whole.Name, whole.Start, whole.End = model.KindStep, "step", start, last+transferTime
	whole.Stream = model.Optional[int64]{}
	return []model.Op{compute, meet, whole}
}

// lines returns the job as the file exporter writes it, one batch per line.
func (s synthetic) lines(t *testing.T) [][]byte {
	t.Helper()
	var out [][]byte
	for step := range s.steps {
		for rank := range s.ranks {
			if rank == s.skip {
				continue
			}
			r := s.rank(rank)
			b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(otelmap.OpsToTraces(&r, s.ops(rank, step)))
			require.NoError(t, err)
			out = append(out, append(b, '\n'))
		}
	}
	return out
}

// write stores the job as a file in a directory of the test and returns its path.
func (s synthetic) write(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spans.jsonl")
	require.NoError(t, os.WriteFile(path, bytes.Join(s.lines(t), nil), 0o600))
	return path
}

var (
	slowJob    = synthetic{ranks: 4, steps: 8, slow: 2, skip: -1}
	healthyJob = synthetic{ranks: 4, steps: 8, slow: -1, skip: -1}
)
