// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/series"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// Throttles has a finding open for each node whose GPU slows down because of its heat. It is not safe for
// concurrent use.
type Throttles struct{ book *finding.Book[struct{}] }

// NewThrottles returns an engine that holds so many open findings.
func NewThrottles(maxFindings int) *Throttles {
	// Same: a finding is revised only where its rank changes, not with each fact.
	same := func(open, found *model.Finding) bool { return open.Rank == found.Rank }
	return &Throttles{finding.New[struct{}](finding.Config{MaxOpen: maxFindings, Same: same})}
}

// Consume takes a fact, and returns the findings that it changes.
func (t *Throttles) Consume(f *model.Fact, now time.Time) []model.Finding {
	if f.Kind == "gpu_throttled" {
		at := finding.Place{Job: f.Rank.JobID, Incarnation: f.Rank.Incarnation, Name: "heat of " + f.Rank.HostName}
		t.book.Found(at, f.Time, &model.Finding{
			JobID: f.Rank.JobID, Incarnation: f.Rank.Incarnation, Kind: "throttle", Class: "heat",
			Rank: model.Some(f.Rank.Rank), Host: f.Rank.HostName, Start: f.Time, Time: f.Time,
			Severity: model.SeverityWarn, Confidence: 1, Action: "check the cooling of the node",
		}, now)
	}
	return t.book.Take()
}

// Config configures the throttle connector.
type Config struct {
	// MaxFindings is the most findings that are open.
	MaxFindings int `mapstructure:"max_findings"`
	// Silent is after how long without a fact a finding is closed.
	Silent time.Duration `mapstructure:"silent"`
	// StorageID names a storage extension that keeps open findings over a restart; nil: none does.
	StorageID *component.ID `mapstructure:"storage"`
}

// NewFactory returns the factory of the throttle connector.
func NewFactory() connector.Factory {
	c := hub.NewConnectors(newEngine)
	return connector.NewFactory(
		component.MustNewType("throttle"),
		func() component.Config { return &Config{MaxFindings: 1024, Silent: time.Minute} },
		connector.WithLogsToLogs(c.LogsToLogs, component.StabilityLevelDevelopment),
		connector.WithLogsToMetrics(c.LogsToMetrics, component.StabilityLevelDevelopment),
	)
}

func newEngine(cfg *Config, _ connector.Settings) (*hub.Engine, error) {
	t := NewThrottles(cfg.MaxFindings)
	open := &series.Metric{Name: "throttle.open", Unit: "{finding}", Kind: series.Gauge, Limit: 1}
	return &hub.Engine{
		Logs:     t.read,
		Settings: hub.Settings{RepeatInterval: 2 * time.Minute, Storage: cfg.StorageID},
		Tick: func(now time.Time) hub.Output {
			t.book.End(now, func(e *finding.Episode[struct{}]) bool { return now.Sub(e.Confirmed) >= cfg.Silent })
			return hub.Output{Findings: t.book.Take()}
		},
		Open:   t.book.Standing,
		States: map[string]hub.State{"findings": t.book},
		Metrics: func(now time.Time) pmetric.Metrics {
			open.Set(now, float64(t.book.Len()))
			md := pmetric.NewMetrics()
			otelmap.WriteMetrics(md, now, open)
			return md
		},
	}, nil
}

// read reads the facts among the records. What a record holds belongs to others once read has returned.
func (t *Throttles) read(ld plog.Logs) hub.Input {
	var facts []model.Fact
	var problems otelmap.Problems
	size := 0
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if f, ok := otelmap.LogToFact(rl.Resource(), lr, &problems); ok {
					facts, size = append(facts, f), size+256+f.Rank.TextBytes()+len(f.What)
				}
			}
		}
	}
	if len(facts) == 0 {
		return hub.Input{}
	}
	return hub.Input{Bytes: size, Apply: func(now time.Time) (out hub.Output) {
		for i := range facts {
			out.Findings = append(out.Findings, t.Consume(&facts[i], now)...)
		}
		return out
	}}
}

// The connector of the document works.
func TestPattern_FactsComeAndEnd_FindingOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, logs, metrics := NewFactory(), &consumertest.LogsSink{}, &consumertest.MetricsSink{}
		set, cfg := connectortest.NewNopSettings(f.Type()), f.CreateDefaultConfig()
		toLogs, err := f.CreateLogsToLogs(t.Context(), set, cfg, logs)
		require.NoError(t, err)
		toMetrics, err := f.CreateLogsToMetrics(t.Context(), set, cfg, metrics)
		require.NoError(t, err)
		both := []connector.Logs{toLogs, toMetrics}
		for _, c := range both {
			require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
		}
		ld := plog.NewLogs()
		otelmap.AppendFact(ld, &model.Fact{
			Rank: model.Rank{JobID: "job", Incarnation: "life", Rank: 3, HostName: "node7"}, Kind: "gpu_throttled", What: "GPU 3 is at 91 degrees", Time: 1,
		})
		for _, c := range both { // the collector gives both instances each batch
			require.NoError(t, c.ConsumeLogs(t.Context(), ld))
		}
		time.Sleep(2 * time.Minute)
		for _, c := range both {
			require.NoError(t, c.Shutdown(t.Context()))
		}
		var got []string
		for _, ld := range logs.AllLogs() {
			f, ok := otelmap.LogToFinding(ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0), nil)
			require.True(t, ok)
			got = append(got, f.Host+" "+f.Status)
		}
		assert.Equal(t, []string{"node7 open", "node7 open", "node7 closed"}, got, "once, with the first tick, and at its end")
		assert.NotEmpty(t, metrics.AllMetrics())
	})
}

// The code of docs/patterns.md is that of this file.
func TestPattern_Document_HasThisCode(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join(testdata.Root(t), "docs", "patterns.md"))
	require.NoError(t, err)
	code, err := os.ReadFile("pattern_test.go")
	require.NoError(t, err)
	blocks := strings.Split(string(doc), "```go\n")[1:]
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		text, _, closed := strings.Cut(b, "```\n")
		require.True(t, closed)
		assert.Contains(t, string(code), text)
	}
}
