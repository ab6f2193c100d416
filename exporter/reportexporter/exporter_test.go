// SPDX-License-Identifier: Apache-2.0

package reportexporter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/lockstep-otel/lockstep/exporter/reportexporter/internal/metadata"
	"github.com/lockstep-otel/lockstep/exporter/reportexporter/internal/metadatatest"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/report/journal"
)

var at = time.Date(2026, 11, 23, 14, 3, 12, 0, time.UTC).UnixNano()

func slow(id string, revision int64, cost float64) model.Finding {
	return model.Finding{
		ID: id, Revision: revision, Time: at, Severity: model.SeverityWarn, Status: model.StatusOpen, JobName: "dlrm",
		Kind: model.FindingStraggler, Class: model.ClassCompute, Rank: model.Some(int64(5)), CostSeconds: model.Some(cost), Confidence: 0.9,
	}
}

func logsOf(findings ...model.Finding) plog.Logs { return otelmap.FindingsToLogs(findings) }

// start starts an exporter that writes to a file, and returns the path.
func start(t *testing.T, set exporter.Settings, change func(c *Config)) (exporter.Logs, string) {
	t.Helper()
	f := NewFactory()
	c := f.CreateDefaultConfig().(*Config)
	c.Path = filepath.Join(t.TempDir(), "findings.txt")
	c.UpdateInterval = 0
	c.Queue = configoptional.None[exporterhelper.QueueBatchConfig]()
	c.Retry.Enabled = false
	if change != nil {
		change(c)
	}
	logs, err := f.CreateLogs(t.Context(), set, c)
	require.NoError(t, err)
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	return logs, c.Path
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func nop() exporter.Settings { return exportertest.NewNopSettings(metadata.Type) }

func TestExporter_Block_PrintsOpenUpdateAndEnd(t *testing.T) {
	logs, path := start(t, nop(), func(c *Config) { c.Summary = true })
	ends := slow("a", 3, 0.3)
	ends.Status, ends.Time = model.StatusClosed, at+int64(time.Minute)
	for _, f := range []model.Finding{slow("a", 0, 0.1), slow("a", 1, 0.11), slow("a", 2, 0.3), ends, ends} {
		require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(f)))
	}
	require.NoError(t, logs.Shutdown(t.Context()))
	assert.Equal(t, `Finding 1, 2026-11-23 14:03:12 UTC, job dlrm: rank 5 makes the others wait
(class compute: its own computation takes longer than its peers')
  cost          100 ms per step is all that mending this rank alone would save
  confidence    0.90 of 1

2026-11-23 14:03:12 UTC: finding 1 is now: rank 5, compute, cost 300 ms per
step.

2026-11-23 14:04:12 UTC: finding 1 closed: rank 5, compute, cost 300 ms per
step.

At the end, finding 1: rank 5, compute, cost 300 ms per step.
`, content(t, path))
}

func TestExporter_Line_IsOneLineEach(t *testing.T) {
	logs, path := start(t, nop(), func(c *Config) { c.Format, c.Summary = "line", true })
	ends := slow("a", 1, 0.1)
	ends.Status, ends.Op = model.StatusClosed, "\x1b[2J"
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow("a", 0, 0.1), ends)))
	require.NoError(t, logs.Shutdown(t.Context()))
	const sentence = "job dlrm: rank 5: straggler (compute)%s; mending it alone would save 100 ms per step (confidence 0.90)\n"
	assert.Equal(t, "2026-11-23T14:03:12.000Z open WARN "+fmt.Sprintf(sentence, "")+
		"2026-11-23T14:03:12.000Z closed WARN "+fmt.Sprintf(sentence, ", at ?[2J")+
		"At the end, finding 1: rank 5, compute, cost 100 ms per step.\n", content(t, path))
}

func TestExporter_FirstSeenClosed_IsPrintedInFull(t *testing.T) {
	logs, path := start(t, nop(), nil)
	f := slow("a", 4, 0.1)
	f.Status = model.StatusClosed
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(f)))
	require.NoError(t, logs.Shutdown(t.Context()))
	assert.True(t, strings.HasPrefix(content(t, path), "Finding 1, 2026-11-23 14:03:12 UTC, job dlrm, closed: rank 5"), content(t, path))
}

func TestExporter_UpdatesNone_PrintsEachFindingOnce(t *testing.T) {
	logs, path := start(t, nop(), func(c *Config) { c.Format, c.Updates = "line", "none" })
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow("a", 0, 1), slow("a", 1, 9), slow("b", 0, 1))))
	require.NoError(t, logs.Shutdown(t.Context()))
	assert.Equal(t, 2, strings.Count(content(t, path), "\n"))
}

// A finding is printed from the revision on that is severe enough, with its end.
func TestExporter_MinSeverity_LeavesOutWhatWasNeverAsSevere(t *testing.T) {
	logs, path := start(t, nop(), func(c *Config) { c.Format, c.MinSeverity = "line", "error" })
	severe, ends := slow("a", 1, 1), slow("a", 2, 1)
	severe.Severity, ends.Severity, ends.Status = model.SeverityError, model.SeverityInfo, model.StatusClosed
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow("a", 0, 1), slow("b", 0, 1), severe, ends)))
	require.NoError(t, logs.Shutdown(t.Context()))
	lines := strings.Split(content(t, path), "\n")
	require.Len(t, lines, 3)
	assert.Contains(t, lines[0], " open ERROR ")
	assert.Contains(t, lines[1], " closed INFO ")
}

func TestExporter_NoFinding_SummaryReportsIt(t *testing.T) {
	logs, path := start(t, nop(), func(c *Config) { c.Summary = true })
	require.NoError(t, logs.Shutdown(t.Context()))
	assert.Equal(t, "No finding.\n", content(t, path))
}

func TestExporter_ColorAlways_Paints(t *testing.T) {
	logs, path := start(t, nop(), func(c *Config) { c.Color, c.Width = "always", 120 })
	require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow("a", 0, 1))))
	require.NoError(t, logs.Shutdown(t.Context()))
	assert.True(t, strings.HasPrefix(content(t, path), "\x1b[1;31mFinding 1"), "%q", content(t, path))
	first, _, _ := strings.Cut(content(t, path), "\n")
	assert.Greater(t, len(first), 80)
}

func TestExporter_ForeignRecords_AreCounted(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	logs, path := start(t, metadatatest.NewSettings(telemetry), func(c *Config) { c.Format = "line" })
	ld := logsOf(slow("a", 0, 1))
	more := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	more.AppendEmpty().SetEventName("lockstep.op.open")
	more.AppendEmpty().Body().SetStr("a line of a log")
	require.NoError(t, logs.ConsumeLogs(t.Context(), ld))
	for i := range journal.MaxFindings {
		require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow(fmt.Sprint(i), 0, 1))))
	}
	require.NoError(t, logs.Shutdown(t.Context()))
	assert.Equal(t, 1+journal.MaxFindings, strings.Count(content(t, path), "\n"))
	count := func(n int64) []metricdata.DataPoint[int64] { return []metricdata.DataPoint[int64]{{Value: n}} }
	metadatatest.AssertEqualExporterReportForeignRecords(t, telemetry, count(2), metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	metadatatest.AssertEqualExporterReportForgottenFindings(t, telemetry, count(1), metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	metadatatest.AssertEqualExporterReportPrintedRevisions(t, telemetry, count(1+journal.MaxFindings), metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

func TestExporter_WithSink_GivesEachRevisionAndWritesNothing(t *testing.T) {
	var got []model.Finding
	shown := component.MustNewIDWithName("report", "shown")
	f := NewFactory(WithSink(func(id component.ID) Sink {
		if id != shown {
			return nil
		}
		return func(f model.Finding) { got = append(got, f) }
	}))
	path := filepath.Join(t.TempDir(), "findings.txt")
	for _, id := range []component.ID{shown, component.MustNewID("report")} {
		c := f.CreateDefaultConfig().(*Config)
		c.Path = path + id.Name()
		set := nop()
		set.ID = id
		logs, err := f.CreateLogs(t.Context(), set, c)
		require.NoError(t, err)
		require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow("a", 0, 1), slow("a", 1, 1))))
		require.NoError(t, logs.Shutdown(t.Context()))
	}
	require.Len(t, got, 2)
	assert.EqualValues(t, 1, got[1].Revision)
	assert.NoFileExists(t, path+"shown")
	assert.Contains(t, content(t, path), "Finding 1")
}

// Findings of exporters that write to one file stay whole.
func TestExporter_SeveralToOneFile_DoNotMix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "findings.txt")
	var all []exporter.Logs
	for range 4 { // a file that is being written while it is opened may seem cut
		logs, _ := start(t, nop(), func(c *Config) { c.Path = path })
		all = append(all, logs)
	}
	var wg sync.WaitGroup
	for _, logs := range all {
		wg.Go(func() {
			for i := range 50 {
				assert.NoError(t, logs.ConsumeLogs(t.Context(), logsOf(slow(fmt.Sprint(i), 0, 1))))
			}
			assert.NoError(t, logs.Shutdown(t.Context()))
		})
	}
	wg.Wait()
	blocks := strings.Split(strings.TrimSuffix(content(t, path), "\n\n"), "\n\n")
	require.Len(t, blocks, 200)
	for _, b := range blocks {
		assert.True(t, strings.HasPrefix(b, "Finding "), b)
		assert.True(t, strings.HasSuffix(b, "confidence    0.90 of 1"), b)
	}
}

func TestExporter_FileCannotBeOpened_DoesNotStart(t *testing.T) {
	f := NewFactory()
	c := f.CreateDefaultConfig().(*Config)
	c.Path = filepath.Join(t.TempDir(), "missing", "f.txt")
	logs, err := f.CreateLogs(t.Context(), nop(), c)
	require.NoError(t, err)
	assert.EqualError(t, logs.Start(t.Context(), componenttest.NewNopHost()),
		"open path "+c.Path+": no such file or directory; make its directory")
	assert.NoError(t, logs.Shutdown(t.Context()))
}
