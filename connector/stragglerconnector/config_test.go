package stragglerconnector

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/lockstep-otel/lockstep/internal/stragglerconfig"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for name, want := range map[string]*Config{
		"straggler": newDefaultConfig(),
		"straggler/all": {
			Analysis: stragglerconfig.Config{
				Deadline: time.Minute, Window: 10, Clock: false, MaxJobs: 2, MaxOpenSteps: 3, MaxRanks: 4,
				MaxOpsPerRankStep: 5, MaxOpenOps: 6, MaxWindowMembers: 11, CleanSteps: 12, MinCostShare: 0.1, MinExcessShare: 0.2, MaxFalseAlarm: 0.3,
			},
			StorySpans: 7, MaxHeldSpans: 8, FlushInterval: time.Second, RepeatInterval: time.Hour, MaxSeries: 9, SeriesExpiration: time.Minute,
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
	cfg.Analysis.Window, cfg.StorySpans, cfg.MaxHeldSpans, cfg.MaxSeries = 0, 0, 0, 0
	cfg.FlushInterval, cfg.RepeatInterval, cfg.SeriesExpiration = 0, 0, -1
	err := cfg.Validate()
	for _, want := range []string{
		"check window: got 0; want at least 1",
		"check story_spans: got 0; want at least 1",
		"check max_held_spans: got 0; want at least 1",
		"check max_series: got 0; want at least 1",
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
