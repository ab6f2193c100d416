// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/epoch/logline"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/report"
)

const (
	megatronLine = "WARNING: on rank 3 found iteration 1500 in the metadata while max iteration across the ranks is 2000, replacing it with max iteration."
	nvmlLine     = "Failed to initialize NVML: Driver/library version mismatch"
)

// line is a record of an ordinary log.
func line(text string, resource map[string]string) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	for k, v := range resource {
		rl.Resource().Attributes().PutStr(k, v)
	}
	lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	lr.Body().SetStr(text)
	lr.SetTimestamp(pcommon.Timestamp(1_700_000_000_000_000_000))
	return ld
}

func TestLinesOfLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		of := map[string]string{"lockstep.job.id": "job", "service.name": "llama", "host.name": "node7"}
		r.send(t, line("step 7: loss 2.3", of))
		r.send(t, line(megatronLine, of))
		r.pass(t, newDefaultConfig().CheckInterval)
		const mixed = "rank 3 on node7: epoch (mixed): the tracker named iteration 1500 where the greatest of all ranks was 2000, which is loaded, as a line of a log says (confidence 0.60)"
		assert.Equal(t, []string{"open: " + mixed}, r.said(t), "with the next look")
		rl := r.logs.AllLogs()[0].ResourceLogs().At(0)
		lr := rl.ScopeLogs().At(0).LogRecords().At(0)
		f, ok := otelmap.LogToFinding(lr, nil)
		require.True(t, ok)
		assert.Equal(t, []any{"epoch", "mixed", "log megatron_iteration", "node7", model.Some[int64](3), []int64{3}, model.SeverityError},
			[]any{f.Kind, f.Class, f.Op, f.Host, f.Rank, f.Ranks, f.Severity})
		assert.JSONEq(t, `{"pattern":"megatron_iteration","line":"`+megatronLine+`","time":"2023-11-14T22:13:20Z","said":{"iteration":"1500","max_iteration":"2000"},"lines":1,"hosts":["node7"],"ranks":[3]}`, evidence.Encode(f.Evidence))

		r.send(t, r.logs.AllLogs()[0]) // that quotes the line
		r.pass(t, newDefaultConfig().LogLines.Silent)
		said := r.said(t)
		assert.Equal(t, "closed: "+mixed, said[len(said)-1])
		assert.EqualValues(t, 1, r.counter(t, "log_lines"))
		assert.EqualValues(t, 2, r.counter(t, "foreign_records"), "what says nothing, and the finding")
		assert.EqualValues(t, 1, r.counter(t, "findings_opened"))
		r.stop(t)
	})
}

// A journal's record has its line in a field; without a job it is of the node.
func TestBodiesThatAreMaps(t *testing.T) {
	for _, name := range []string{"MESSAGE", "message", "msg", "log"} {
		w := newWatches(newDefaultConfig(), zap.NewNop())
		ld := line("", map[string]string{"k8s.node.name": "node7"})
		lr := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		lr.Body().SetEmptyMap().PutStr(name, nvmlLine)
		apply(w, ld)
		changed := w.conclude(time.Now()).Findings
		require.Len(t, changed, 1, name)
		assert.Equal(t, []any{"", "node7", "fleet_mixed", "log nvml_library"}, []any{changed[0].JobID, changed[0].Host, changed[0].Class, changed[0].Op})

		lr.Body().SetEmptySlice().AppendEmpty().SetStr(nvmlLine)
		apply(w, ld)
		assert.EqualValues(t, 1, w.foreign.Load())
	}
}

func TestLinesOfLogsSwitchedOff(t *testing.T) {
	c := newDefaultConfig()
	c.LogLines.Enabled = false
	w := newWatches(c, zap.NewNop())
	apply(w, line(nvmlLine, nil))
	changed := w.conclude(time.Now()).Findings
	assert.Empty(t, changed)
}

// What can not be is said, and believed less.
func TestLinesThatCanNotBe(t *testing.T) {
	w := newWatches(newDefaultConfig(), zap.NewNop())
	apply(w, line("on rank 3 found iteration 9 in the metadata while max iteration across the ranks is 7, replacing it with max iteration.", nil))
	changed := w.conclude(time.Now()).Findings
	require.Len(t, changed, 1)
	assert.Equal(t, []any{0.3, model.SeverityWarn}, []any{changed[0].Confidence, changed[0].Severity})
}

// A host whose log says that ranks of its job differ is not called the place.
func TestWhoSaysItIsNotWhoIsWrong(t *testing.T) {
	w := newWatches(newDefaultConfig(), zap.NewNop())
	apply(w, line("NCCL WARN Mismatched NCCL version detected : rank 0 version 22703 rank 8 version 22602", map[string]string{"lockstep.job.id": "j", "host.name": "n"}))
	changed := w.conclude(time.Now()).Findings
	require.Len(t, changed, 1)
	assert.Empty(t, changed[0].Host)
	assert.Contains(t, report.Sentence(&changed[0]), "job j: ")
	assert.Contains(t, evidence.Encode(changed[0].Evidence), `"hosts":["n"]`)
}

// Each pattern has a meaning, and a sentence.
func TestMeanings(t *testing.T) {
	for _, text := range []string{
		megatronLine, nvmlLine,
		"[rank=5] The checkpoint tag name 'x' is not consistent across all ranks. Including rank unique information in checkpoint tag could",
		"The following zero checkpoints paths are missing: ['/x/a.pt']",
		"NCCL WARN Mismatched NCCL version detected : rank 0 version 22703 rank 8 version 22602",
		"NCCL INFO Detected mixed local Net device counts across ranks (min 1, max 2). Ignoring due to NCCL_IGNORE_NET_MISMATCH.",
		"NVRM: API mismatch: the client has the version 390.157, but",
		"fabric manager NVIDIA GPU driver interface version 530.30.02 don't match with driver version 530.41.03.",
	} {
		w := logline.New(logline.NewDefaultConfig())
		require.True(t, w.Observe(&logline.Line{JobID: "j", Host: "h", Text: text}, time.Now()), text)
		f := w.Tick(time.Now())[0]
		assert.NotEmpty(t, f.Class, text)
		assert.NotEmpty(t, f.Action, text)
		assert.Contains(t, report.Sentence(&f), "as a line of a log says", text)
	}
}
