// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/finding"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// Throttles opens a finding for each rank whose GPU slows down because of its heat. It is not safe for
// concurrent use.
type Throttles struct{ book *finding.Book[struct{}] }

// NewThrottles returns an engine that holds so many open findings.
func NewThrottles(maxFindings int) *Throttles {
	return &Throttles{finding.New[struct{}](finding.Config{MaxOpen: maxFindings})}
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
}

// NewFactory returns the factory of the throttle connector.
func NewFactory() connector.Factory {
	c := hub.NewConnectors(newEngine)
	return connector.NewFactory(
		component.MustNewType("throttle"),
		func() component.Config { return &Config{MaxFindings: 1024} },
		connector.WithLogsToLogs(c.LogsToLogs, component.StabilityLevelDevelopment),
	)
}

func newEngine(cfg *Config, _ connector.Settings) (*hub.Engine, error) {
	t := NewThrottles(cfg.MaxFindings)
	return &hub.Engine{
		Settings: hub.Settings{Interval: time.Second, FlushInterval: 15 * time.Second},
		Logs:     t.read,
	}, nil
}

// read reads the facts among the records. What a record holds belongs to others once read has returned.
func (t *Throttles) read(ld plog.Logs) hub.Input {
	var facts []model.Fact
	var problems otelmap.Problems
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if f, ok := otelmap.LogToFact(rl.Resource(), lr, &problems); ok {
					facts = append(facts, f)
				}
			}
		}
	}
	if len(facts) == 0 {
		return hub.Input{}
	}
	return hub.Input{Bytes: 256 * len(facts), Apply: func(now time.Time) (out hub.Output) {
		for i := range facts {
			out.Findings = append(out.Findings, t.Consume(&facts[i], now)...)
		}
		return out
	}}
}

// The connector of the document works.
func TestPattern_FactComes_FindingIsSent(t *testing.T) {
	f, sink := NewFactory(), &consumertest.LogsSink{}
	c, err := f.CreateLogsToLogs(t.Context(), connectortest.NewNopSettings(f.Type()), f.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	ld := plog.NewLogs()
	otelmap.AppendFact(ld, &model.Fact{
		Rank: model.Rank{JobID: "job", Incarnation: "life", Rank: 3, HostName: "node7"}, Kind: "gpu_throttled", What: "GPU 3 is at 91 degrees", Time: 1,
	})
	require.NoError(t, c.ConsumeLogs(t.Context(), ld))
	require.NoError(t, c.Shutdown(t.Context()))
	require.Equal(t, 1, sink.LogRecordCount())
	lr := sink.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	got, ok := otelmap.LogToFinding(lr, nil)
	require.True(t, ok)
	assert.Equal(t, []any{"throttle", "node7", model.Some[int64](3)}, []any{got.Kind, got.Host, got.Rank})
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
