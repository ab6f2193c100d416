// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/lockstep-otel/lockstep/internal/stragglerconfig"
)

func TestLoadConfig(t *testing.T) {
	fileStorage := component.MustNewID("file_storage")
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for name, want := range map[string]*Config{
		"straggler": newDefaultConfig(),
		"straggler/all": {
			Analysis: stragglerconfig.Config{
				Method:   "kair",
				Deadline: time.Minute, Reorder: time.Second, Window: 10, Clock: false, MaxJobs: 2, MaxOpenSteps: 3, MaxRanks: 4,
				MaxOpsPerRankStep: 5, MaxOpenOps: 6, MaxWindowMembers: 11, MaxMemoryMiB: 13, CleanSteps: 12, MinCostShare: 0.1, MinExcessShare: 0.2, MaxFalseAlarm: 0.3,
			},
			StorySpans: 7, MaxHeldSpans: 8, FlushInterval: time.Second, RepeatInterval: time.Hour, MaxSeries: 9, MaxOperations: 10, SeriesExpiration: time.Minute,
			StorageID: &fileStorage,
		},
	} {
		sub, err := cm.Sub(name)
		require.NoError(t, err)
		cfg := NewFactory().CreateDefaultConfig()
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg))
		assert.Equal(t, want, cfg, name)
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.Analysis.Window, cfg.StorySpans, cfg.MaxHeldSpans, cfg.MaxSeries, cfg.MaxOperations = 0, 0, 0, 0, 0
	cfg.FlushInterval, cfg.RepeatInterval, cfg.SeriesExpiration = 0, 0, -1
	err := cfg.Validate()
	for _, want := range []string{
		"check window: got 0; want at least 1",
		"check story_spans: got 0; want at least 1",
		"check max_held_spans: got 0; want at least 1",
		"check max_series: got 0; want at least 1",
		"check max_operations: got 0; want at least 1",
		"check flush_interval: got 0s; want more than 0",
		"check repeat_interval: got 0s; want more than 0",
		"check series_expiration: got -1ns; want 0 or more",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, typ := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[stragglerconfig.Config]()} {
		for f := range typ.Fields() {
			if key := f.Tag.Get("mapstructure"); key != "" && key != ",squash" {
				assert.Contains(t, string(readme), "| `"+key+"` |")
			}
		}
	}
}

// The README's table of metrics is what users build dashboards from.
func TestEveryMetricIsDocumented(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	r := newRig(t, nil)
	r.run(t, 1)
	r.stop(t)
	all := r.metrics.AllMetrics()
	for _, m := range all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		row := "| `" + m.Name() + "` | " + strings.ToLower(m.Type().String()) + " | " + m.Unit() + " | "
		assert.Contains(t, string(readme), row+"`lockstep.job.id`")
	}
}

// The queries name metrics as the prometheus exporter writes those of the table.
func TestQueriesNameMetricsOfTheTable(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	suffix := map[string]string{"sum s": "_seconds_total", "gauge s": "_seconds", "gauge 1": "_ratio", "sum {operation}": "_total", "histogram s": "_seconds_count"}
	known := map[string]bool{"lockstep_findings_total": true} // of the connector findings
	for _, row := range regexp.MustCompile("(?m)^\\| `(lockstep[^`]*)` \\| (\\w+) \\| (\\S+) \\|").FindAllStringSubmatch(string(readme), -1) {
		end, ok := suffix[row[2]+" "+row[3]]
		require.True(t, ok, row[0])
		known[strings.ReplaceAll(row[1], ".", "_")+end] = true
	}
	_, panels, ok := strings.Cut(string(readme), "\n### Panels\n")
	require.True(t, ok)
	used := regexp.MustCompile(`lockstep_[a-z_]+(\{|`+"`"+`)`).FindAllString(panels, -1)
	require.Greater(t, len(used), 5)
	for _, name := range used {
		assert.True(t, known[name[:len(name)-1]], name)
	}
}
