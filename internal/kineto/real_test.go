// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/kernelname"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

func parseFile(tb testing.TB, path string) *Trace {
	tb.Helper()
	t, err := ParseFile(tb.Context(), path, DefaultOptions())
	require.NoError(tb, err)
	return t
}

func ofKind(t *Trace, kinds ...model.OpKind) []model.Op {
	var out []model.Op
	for op := range t.Ops() {
		if slices.Contains(kinds, op.Kind) {
			out = append(out, op)
		}
	}
	return out
}

func countKinds(t *Trace) map[model.OpKind]int {
	out := map[model.OpKind]int{}
	for op := range t.Ops() {
		out[op.Kind]++
	}
	return out
}

// invariants hold for every trace, however broken.
func invariants(tb testing.TB, t *Trace) {
	tb.Helper()
	rank := t.Rank()
	spans := map[model.SpanRef]bool{}
	last := int64(-1)
	closed := map[int64]bool{}
	for op := range t.Ops() {
		require.GreaterOrEqual(tb, op.End, op.Start, op.Name)
		require.NotEmpty(tb, op.ComparisonKey())
		require.LessOrEqual(tb, len(op.Name), kernelname.MaxBytes)
		at := op.Step.Or(-1)
		require.GreaterOrEqual(tb, at, last, "steps ascend")
		last = at
		require.False(tb, closed[at] && op.Step.OK, "nothing follows a step's own operation")
		if op.Kind == model.KindStep {
			closed[at] = true
		}
		if op.Step.OK {
			ref := rank.Ref(&op)
			require.False(tb, spans[ref], "span id of %s is used twice", op.Name)
			spans[ref] = true
		}
	}
}

func micros(n int64) int64 { return n * 1000 }

// The counts and times of the eight DLRM files were computed with Python's json
// from the files: kernels whose name does not begin with nccl; those that do;
// gpu_memcpy and gpu_memset; user_annotation without nccl:* and ProfilerStep;
// operations whose correlation has no cuda_runtime event; ts, dur and the
// launch's ts of the NCCL kernel that was launched first; ts of ProfilerStep#10.
func TestDLRM(t *testing.T) {
	dir := testdata.Shared(t, "dlrm-8xV100")
	tests := []struct {
		compute, copies    int
		noLaunch           int64
		ts, dur, launch    int64
		stepStart, stepDur int64
	}{
		{237, 16, 0, 1694128201429795, 2146, 1694128201429782, 1694128201426674, 14455},
		{302, 16, 64, 1694128201424306, 7635, 1694128201424294, 1694128201421205, 19901},
		{238, 16, 0, 1694128201431422, 518, 1694128201431410, 1694128201428092, 13017},
		{307, 22, 64, 1694128201425808, 6132, 1694128201425794, 1694128201421900, 19313},
		{243, 22, 0, 1694128201427058, 4882, 1694128201427046, 1694128201424049, 17979},
		{237, 16, 0, 1694128201427261, 4679, 1694128201427249, 1694128201424195, 17797},
		{238, 16, 0, 1694128201431425, 514, 1694128201431412, 1694128201428080, 13091},
		{238, 16, 0, 1694128201431930, 10, 1694128201431918, 1694128201428718, 12509},
	}
	for rank, tt := range tests {
		t.Run(strconv.Itoa(rank), func(t *testing.T) {
			matches, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("worker%d_*.gz", rank)))
			require.NoError(t, err)
			require.Len(t, matches, 1)
			tr := parseFile(t, matches[0])
			invariants(t, tr)
			assert.Equal(t, int64(rank), tr.Rank().Rank)
			assert.Equal(t, model.Some(int64(8)), tr.Rank().WorldSize)
			assert.Equal(t, model.Some(int64(59811+rank)), tr.Rank().PID)
			assert.Equal(t, "dlrm-8xV100", tr.Rank().JobID)
			assert.Equal(t, tt.noLaunch, tr.Stats().NoLaunch)
			assert.Equal(t, map[model.OpKind]int{
				model.KindCompute: tt.compute, model.KindCollective: 8, model.KindCopy: tt.copies,
				model.KindScope: 31, model.KindStep: 1,
			}, countKinds(tr))

			checkDLRMCollectives(t, ofKind(tr, model.KindCollective), int64(rank))
			first := ofKind(tr, model.KindCollective)[0]
			assert.Equal(t, micros(tt.ts), first.Start)
			assert.Equal(t, micros(tt.ts+tt.dur), first.End)
			assert.Equal(t, model.Some(micros(tt.launch)), first.Launch)

			step := ofKind(tr, model.KindStep)[0]
			assert.Equal(t, model.Some(int64(10)), step.Step)
			assert.Equal(t, micros(tt.stepStart), step.Start)
			assert.GreaterOrEqual(t, step.End, micros(tt.stepStart+tt.stepDur))
		})
	}
}

// checkDLRMCollectives: bytes are Input Dims times the size of Input type of the
// nccl:* annotations, which are float, int and long int.
func checkDLRMCollectives(t *testing.T, ops []model.Op, rank int64) {
	t.Helper()
	require.Len(t, ops, 8)
	names := []string{
		model.AllToAll, model.AllToAll, model.AllToAll, model.AllToAll, model.AllReduce, model.AllToAll, model.AllReduce, model.AllReduce,
	}
	sizes := []int64{24576, 192, 1536, 13568, 1576964, 24576, 448, 907840}
	next := map[string]int64{}
	for i, op := range ops {
		c := op.Collective
		assert.Equal(t, names[i], c.Name, "collective %d", i)
		assert.Equal(t, model.Some(sizes[i]), c.Bytes, "collective %d", i)
		assert.Equal(t, model.ScopeOrdinal, c.SeqScope)
		assert.Equal(t, model.Some(next[c.Name]), c.Seq, "collective %d", i)
		next[c.Name]++
		assert.Equal(t, model.Comm{ID: "world", Name: "world", Size: model.Some(int64(8)), Rank: model.Some(rank)}, op.Comm)
		assert.Equal(t, model.Some(int64(84)), op.Stream)
		if c.Name == model.AllReduce {
			assert.Equal(t, "RING", c.Algo)
			assert.Equal(t, "LL", c.Proto)
			assert.Equal(t, "float32", c.DType)
		}
	}
}

// Computed with Python's json: 21 NCCL kernels, 15 all-reduces and 6 broadcasts
// of group "0" with ranks [0, 1]; ts 4458677009853.422 of the all-reduce with
// 6637568 floats under base 1711964646000000000.
func TestTraceWithGroupArguments(t *testing.T) {
	dir := testdata.Shared(t, "kineto-single")
	tr := parseFile(t, filepath.Join(dir, "a100_2gpu_rank0_pgmeta.json.gz"))
	invariants(t, tr)
	ops := ofKind(tr, model.KindCollective)
	require.Len(t, ops, 21)
	byName := map[string]int{}
	var found bool
	for _, op := range ops {
		byName[op.Collective.Name]++
		assert.Equal(t, model.Comm{
			ID: "0", Name: "default_pg", Digest: model.RanksDigest([]int64{0, 1}),
			Size: model.Some(int64(2)), Rank: model.Some(int64(0)),
		}, op.Comm)
		if op.Start == 1711964646000000000+4458677009853422 {
			found = true
			assert.Equal(t, int64(2636669), op.Duration())
			assert.Equal(t, model.Some(int64(6637568*4)), op.Collective.Bytes)
			assert.Equal(t, model.Some(int64(60047)), op.Correlation)
			assert.Equal(t, "8,1,1", op.WorkGrid)
		}
	}
	assert.True(t, found)
	assert.Equal(t, map[string]int{model.AllReduce: 15, model.Broadcast: 6}, byName)
	assert.Len(t, ofKind(tr, model.KindStep), 3)
}

// In rank 4 of the healthy recording the first two runs begin in the opposite
// order of their launches (41216 elements, then 30880); computed with Python.
func TestSwappedRuns(t *testing.T) {
	tr := parseFile(t, filepath.Join(testdata.Recording(t, "healthy"), "rank4.json.gz"))
	ops := ofKind(tr, model.KindCollective)
	require.Len(t, ops, 24)
	require.Equal(t, model.Some(int64(30880*4)), ops[0].Collective.Bytes, "began first")
	assert.Equal(t, model.Some(int64(1)), ops[0].Collective.Seq, "was launched second")
	assert.Equal(t, model.Some(int64(41216*4)), ops[1].Collective.Bytes)
	assert.Equal(t, model.Some(int64(0)), ops[1].Collective.Seq)
	assert.Less(t, ops[1].Launch.V, ops[0].Launch.V)
}

// Computed with Python's json from the recordings: 432 outermost cpu_ops that
// are not c10d::*, 48 annotations beside gloo:* and ProfilerStep, 24 runs of
// gloo; the first launch of slow/rank5 at 4396516288734.080 µs and its run at
// 4396516288944.221 µs behind the base.
func TestRecordings(t *testing.T) {
	for _, name := range []string{"slow", "healthy"} {
		for rank := range int64(8) {
			tr := parseFile(t, filepath.Join(testdata.Recording(t, name), fmt.Sprintf("rank%d.json.gz", rank)))
			invariants(t, tr)
			assert.Empty(t, tr.Problems())
			assert.Equal(t, rank, tr.Rank().Rank)
			assert.Equal(t, model.Some(int64(8)), tr.Rank().WorldSize)
			assert.Equal(t, "vm", tr.Rank().HostName)
			assert.Equal(t, map[model.OpKind]int{
				model.KindCompute: 432, model.KindCollective: 24, model.KindScope: 48, model.KindStep: 6,
			}, countKinds(tr))
			for i, op := range ofKind(tr, model.KindStep) {
				assert.Equal(t, model.Some(int64(6+i)), op.Step)
			}
			for _, op := range ofKind(tr, model.KindCollective) {
				assert.Equal(t, model.RanksDigest([]int64{0, 1, 2, 3, 4, 5, 6, 7}), op.Comm.Digest)
				assert.Equal(t, model.Some(rank), op.Comm.Rank)
				assert.Less(t, op.Launch.V, op.Start)
			}
		}
	}
	tr := parseFile(t, filepath.Join(testdata.Recording(t, "slow"), "rank5.json.gz"))
	const base = int64(1790857026000000000)
	first := ofKind(tr, model.KindCollective)[0]
	assert.Equal(t, model.Some(base+4396516288734080), first.Launch)
	assert.Equal(t, base+4396516288944221, first.Start)
	assert.Equal(t, "0", first.Comm.ID)
	assert.Equal(t, "default_pg", first.Comm.Name)
}
