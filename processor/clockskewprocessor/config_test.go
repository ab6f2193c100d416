// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func load(t *testing.T, name string) *Config {
	t.Helper()
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	sub, err := cm.Sub(name)
	require.NoError(t, err)
	cfg := NewFactory().CreateDefaultConfig()
	require.NoError(t, sub.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg.(*Config)
}

func TestLoadConfig(t *testing.T) {
	assert.Equal(t, newDefaultConfig(), load(t, "clock_skew"))

	shared := newDefaultConfig()
	id := component.MustNewIDWithName("timeline", "cluster")
	shared.Mode, shared.Timeline = ModeAnnotate, &id
	assert.Equal(t, shared, load(t, "clock_skew/extension"))

	id = component.MustNewID("timeline")
	assert.Equal(t, &Config{
		Mode: ModeOff, Timeline: &id, Traces: TracesConfig{Window: 5 * time.Second, MaxPairs: 10},
		Health: HealthConfig{Window: time.Minute, Limit: 0.5}, MaxSpans: 11, MaxClocks: 12, MaxJobs: 13, SlewLimit: 14,
	}, load(t, "clock_skew/all"))
}

func TestValidateNamesEveryFault(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.Mode, cfg.MaxSpans, cfg.MaxClocks, cfg.MaxJobs, cfg.SlewLimit = "centre", 0, -1, 1<<30, 0
	cfg.Traces.Window, cfg.Traces.MaxPairs = time.Microsecond, 0
	cfg.Health.Window, cfg.Health.Limit = time.Millisecond, math.NaN()
	err := cfg.Validate()
	for _, want := range []string{
		`check mode: got "centre"; want realign, annotate or off`,
		"check max_spans: got 0; want 1 to",
		"check max_clocks: got -1; want 1 to",
		"check max_jobs: got 1073741824; want 1 to",
		"check traces::window: got 1µs; want 1ms to 1h",
		"check traces::max_pairs: got 0; want 1 to",
		"check health::window: got 1ms; want 1s to 1h",
		"check slew_limit: got 0; want more than 0",
		"check health::limit: got NaN; want 0 to 1",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for prefix, typ := range map[string]reflect.Type{
		"": reflect.TypeFor[Config](), "traces::": reflect.TypeFor[TracesConfig](), "health::": reflect.TypeFor[HealthConfig](),
	} {
		for f := range typ.Fields() {
			switch key := f.Tag.Get("mapstructure"); key {
			case "", "traces", "health":
			default:
				assert.Contains(t, string(readme), "| `"+prefix+key+"` |")
			}
		}
	}
}
