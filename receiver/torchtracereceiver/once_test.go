// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/lockstep-otel/lockstep/internal/intake"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/replay"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// The recordings hold 8 ranks, 6 steps from 6 to 11, and 4 all-reduces a step
// (testdata/recordings/README.md).
const (
	recordedRanks       = 8
	recordedSteps       = 6
	recordedCollectives = 4 * recordedSteps
)

func recorded(t *testing.T, rank int) string {
	t.Helper()
	return filepath.Join(testdata.Recording(t, "slow"), fmt.Sprintf("rank%d.json.gz", rank))
}

func replayOver() bool {
	select {
	case <-replay.Done():
		return true
	default:
		return false
	}
}

func TestOnceReadsTheRecording(t *testing.T) {
	replay.Reset()
	t.Cleanup(replay.Reset)
	var sink consumertest.TracesSink
	b := start(t, config(testdata.Recording(t, "slow")), &sink)
	b.finish(t)

	ranks := received(t, &sink)
	require.Len(t, ranks, recordedRanks)
	for rank, ro := range ranks {
		assert.Equal(t, recordedSteps, countOps(ro.Ops, isStep), "rank %d", rank)
		assert.Equal(t, recordedCollectives, countOps(ro.Ops, isCollective), "rank %d", rank)
		assert.Equal(t, model.Some[int64](recordedRanks), ro.Rank.WorldSize)
		assert.Equal(t, "slow", ro.Rank.JobID, "the folder names the job")
		assert.Equal(t, ranks[0].Rank.Incarnation, ro.Rank.Incarnation, "all ranks are of one life")
	}
	assert.EqualValues(t, recordedRanks, b.counter(t, "files_read"))
	assert.EqualValues(t, sink.SpanCount(), b.counter(t, "operations_emitted"))
	assert.Zero(t, b.counter(t, "files_failed"))
	assert.Zero(t, b.counter(t, "operations_dropped"))
	assert.Positive(t, b.counter(t, "events_skipped"))
	assert.Less(t, b.counter(t, "events_skipped"), b.counter(t, "events_read"))
	assert.Empty(t, b.host.statuses(), "nothing to report")
	assert.True(t, replayOver(), "a replay ends with its input")
}

func TestOnceHandsOnStepByStep(t *testing.T) {
	var sink consumertest.TracesSink
	b := start(t, config(testdata.Recording(t, "slow")), &sink)
	b.finish(t)

	lastRank, lastStep := int64(0), int64(-1)
	for _, td := range sink.AllTraces() {
		ranks, _ := otelmap.TracesToOps(td)
		rank, ops := ranks[0].Rank.Rank, ranks[0].Ops
		assert.GreaterOrEqual(t, rank, lastRank, "rank by rank")
		if rank != lastRank {
			lastRank, lastStep = rank, -1
		}
		step := ops[0].Step.Or(-1)
		for _, op := range ops {
			assert.Equal(t, step, op.Step.Or(-1), "a batch is of one step")
		}
		if ops[0].Step.OK {
			assert.Greater(t, step, lastStep, "rank %d: a step is not split, and follows the one before", rank)
			assert.Equal(t, model.KindStep, ops[len(ops)-1].Kind, "the step itself comes last")
		}
		lastStep = step
	}
}

func TestBatchLimitSplitsAStep(t *testing.T) {
	var whole, split consumertest.TracesSink
	start(t, config(recorded(t, 0)), &whole).finish(t)
	cfg := config(recorded(t, 0))
	cfg.BatchOps = 10
	start(t, cfg, &split).finish(t)

	assert.Equal(t, whole.SpanCount(), split.SpanCount())
	assert.Greater(t, len(split.AllTraces()), len(whole.AllTraces()))
	for _, td := range split.AllTraces() {
		assert.LessOrEqual(t, td.SpanCount(), 10)
	}
}

// The read-me of these traces: 8 ranks of one step, 8 NCCL kernels a rank.
func TestOnceReadsRealTraces(t *testing.T) {
	var sink consumertest.TracesSink
	b := start(t, config(testdata.Shared(t, "dlrm-8xV100")), &sink)
	b.finish(t)

	ranks := received(t, &sink)
	require.Len(t, ranks, 8)
	for rank, ro := range ranks {
		assert.Equal(t, 8, countOps(ro.Ops, isCollective), "rank %d", rank)
		assert.Equal(t, 1, countOps(ro.Ops, isStep), "rank %d", rank)
		assert.Equal(t, model.Some[int64](8), ro.Rank.WorldSize)
	}
	assert.EqualValues(t, 8, b.counter(t, "files_read"))
}

func TestGlobsAndExclude(t *testing.T) {
	var sink consumertest.TracesSink
	cfg := config(filepath.Join(testdata.Recording(t, "slow"), "rank[0-3].json.gz"), recorded(t, 5), recorded(t, 5))
	cfg.Exclude = []string{"rank2*"}
	cfg.JobID, cfg.JobName, cfg.WorldSize = "llama", "Llama", 16
	b := start(t, cfg, &sink)
	b.finish(t)

	ranks := received(t, &sink)
	assert.Len(t, ranks, 4)
	for _, rank := range []int64{0, 1, 3, 5} {
		assert.Equal(t, "llama", ranks[rank].Rank.JobID)
		assert.Equal(t, "Llama", ranks[rank].Rank.JobName)
		assert.Equal(t, model.Some[int64](16), ranks[rank].Rank.WorldSize)
	}
	assert.EqualValues(t, 4, b.counter(t, "files_read"), "a file named twice is read once")
}

func TestTwoFilesOfOneRank(t *testing.T) {
	dir := copyFiles(t, map[string]string{
		"rank0.json.gz": recorded(t, 0), "rank0_again.json.gz": recorded(t, 0), "rank1.json.gz": recorded(t, 1),
	})
	var sink, alone consumertest.TracesSink
	b := start(t, config(dir), &sink)
	b.finish(t)
	start(t, config(recorded(t, 0)), &alone).finish(t)

	ranks := received(t, &sink)
	require.Len(t, ranks, 2)
	assert.Len(t, ranks[0].Ops, alone.SpanCount(), "rank 0 is emitted once")
	assert.EqualValues(t, 2, b.counter(t, "files_read"))
	assert.EqualValues(t, 1, b.counter(t, "files_failed", string(intake.RankTaken)))
	assert.True(t, b.said("claim rank 0", filepath.Join(dir, "rank0.json.gz"), filepath.Join(dir, "rank0_again.json.gz")), "both are named")
}

func TestNoFileIsAPermanentError(t *testing.T) {
	for name, include := range map[string]string{
		"empty folder": t.TempDir(),
		"no match":     filepath.Join(t.TempDir(), "*.json"),
		"absent":       filepath.Join(t.TempDir(), "absent"),
	} {
		t.Run(name, func(t *testing.T) {
			replay.Reset()
			t.Cleanup(replay.Reset)
			var sink consumertest.TracesSink
			b := start(t, config(include), &sink)
			b.finish(t)
			assert.Equal(t, []componentstatus.Status{componentstatus.StatusPermanentError}, b.host.statuses())
			assert.Contains(t, b.host.lastError(), include)
			assert.Contains(t, b.host.lastError(), "want at least one")
			assert.True(t, replayOver(), "a replay without input ends, too")
		})
	}
}

func TestTruncatedGzipCostsNoOtherRank(t *testing.T) {
	dir := copyFiles(t, map[string]string{
		"rank0.json.gz": recorded(t, 0), "rank1.json.gz": recorded(t, 1), "rank2.json.gz": recorded(t, 2),
	})
	cut := filepath.Join(dir, "rank1.json.gz")
	info, err := os.Stat(cut)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(cut, info.Size()*3/4))
	var sink consumertest.TracesSink
	b := start(t, config(dir), &sink)
	b.finish(t)

	ranks := received(t, &sink)
	assert.Equal(t, recordedCollectives, countOps(ranks[0].Ops, isCollective))
	assert.Equal(t, recordedCollectives, countOps(ranks[2].Ops, isCollective))
	assert.NotContains(t, ranks, int64(1), "half a trace is left out as a whole")
	assert.Equal(t, model.Some[int64](recordedRanks), ranks[0].Rank.WorldSize, "its rank is missing")
	assert.EqualValues(t, 2, b.counter(t, "files_read"))
	assert.EqualValues(t, 1, b.counter(t, "files_failed", string(intake.Damaged)))
	assert.EqualValues(t, 1, b.counter(t, "problems"))
	assert.True(t, b.said(cut, "offset ", `"offset":`, `"rank":1`), "the log names file, offset and rank")
	assert.Empty(t, b.host.statuses())
}

func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"rank0.json": "", "rank1.json": `{"traceEvents": [}`, "rank2.json": `{"other": 1}`, "rank3.json": "\x1f\x8bno gzip",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	var sink consumertest.TracesSink
	b := start(t, config(dir), &sink)
	b.finish(t)

	assert.Zero(t, sink.SpanCount())
	assert.EqualValues(t, 4, b.counter(t, "files_failed", string(intake.Unreadable)))
	for _, name := range []string{"rank0.json", "rank1.json", "rank2.json", "rank3.json"} {
		assert.True(t, b.said(filepath.Join(dir, name), "offset "), name)
	}
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusPermanentError}, b.host.statuses())
	assert.Contains(t, b.host.lastError(), "got 4 files, none of them readable")
}

func TestDamagedFileAloneIsAPermanentError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rank0.json"), []byte(oneKernel[:len(oneKernel)-1]), 0o644))
	var sink consumertest.TracesSink
	b := start(t, config(dir), &sink)
	b.finish(t)
	assert.Zero(t, sink.SpanCount())
	assert.EqualValues(t, 1, b.counter(t, "files_failed", string(intake.Damaged)))
	assert.EqualValues(t, 1, b.counter(t, "events_read"), "its events were read all the same")
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusPermanentError}, b.host.statuses())
}

const oneKernel = `{"traceEvents": [
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1700000000000100, "dur": 5, "args": {"stream": 7, "correlation": 1}}
]}`

func TestRankOfAFileThatDoesNotSay(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "trace.json"), []byte(oneKernel), 0o644))
	var sink consumertest.TracesSink
	start(t, config(dir), &sink).finish(t)
	ranks := received(t, &sink)
	require.Len(t, ranks, 1, "the only file of a job is its only rank")
	assert.Equal(t, model.Some[int64](1), ranks[0].Rank.WorldSize)

	sink.Reset()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "another.json"), []byte(oneKernel), 0o644))
	b := start(t, config(dir), &sink)
	b.finish(t)
	assert.Zero(t, sink.SpanCount(), "of two nobody knows which is which")
	assert.EqualValues(t, 2, b.counter(t, "files_failed", string(intake.NoRank)))
	assert.True(t, b.said("rank pattern"))
}

func TestWorldSizeFromNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"rank0.json", "rank1.json", "rank10.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(oneKernel), 0o644))
	}
	var sink consumertest.TracesSink
	start(t, config(dir), &sink).finish(t)
	ranks := received(t, &sink)
	require.Len(t, ranks, 3)
	for _, ro := range ranks {
		assert.Equal(t, model.Some[int64](11), ro.Rank.WorldSize, "rank 10 exists, so there are 11")
	}
}

func TestReadingOrderAndFileLimit(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"rank10.json", "rank9.json", "rank1.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(oneKernel), 0o644))
	}
	cfg := config(dir)
	cfg.MaxFiles = 2
	var sink consumertest.TracesSink
	b := start(t, cfg, &sink)
	b.finish(t)
	ranks := received(t, &sink)
	assert.Len(t, ranks, 2)
	assert.Contains(t, ranks, int64(1))
	assert.Contains(t, ranks, int64(9))
	assert.EqualValues(t, 1, b.counter(t, "files_ignored"))
	assert.True(t, b.said("got 3; want at most 2 (max_files)"))
}
