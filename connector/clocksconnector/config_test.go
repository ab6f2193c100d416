// SPDX-License-Identifier: Apache-2.0

package clocksconnector

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	extension := newDefaultConfig()
	id := component.MustNewID("timeline")
	extension.Timeline = &id
	for name, want := range map[string]*Config{
		"clocks":           newDefaultConfig(),
		"clocks/extension": extension,
		"clocks/all": {
			MaxClocks: 1000, ForgetAfter: 5 * time.Minute, SkewThreshold: 2 * time.Millisecond, DriftThreshold: 50, SlewLimit: 25,
			SolveInterval: 500 * time.Millisecond, FlushInterval: time.Minute, MaxSeries: 50, SeriesExpiration: time.Hour,
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
	err := (&Config{SeriesExpiration: -1}).Validate()
	for _, want := range []string{
		"check max_clocks: got 0; want at least 1", "check forget_after: got 0s; want more than 0",
		"check skew_threshold: got 0s; want more than 0", "check drift_threshold: got 0; want more than 0", "check slew_limit: got 0; want more than 0",
		"check solve_interval: got 0s; want more than 0", "check flush_interval: got 0s; want more than 0",
		"check max_series: got 0; want at least 1", "check series_expiration: got -1ns; want 0 or more",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for f := range reflect.TypeFor[Config]().Fields() {
		if key := f.Tag.Get("mapstructure"); key != "" {
			assert.Contains(t, string(readme), "| `"+key+"` |")
		}
	}
}

// The published sample is one that works.
func TestPublishedSample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(readme), "```yaml\n")
	require.True(t, ok)
	sample, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(sample))
	require.NoError(t, err)
	cm, err := retrieved.AsConf()
	require.NoError(t, err)
	sub, err := cm.Sub("connectors::clocks")
	require.NoError(t, err)
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	require.NoError(t, sub.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	require.NotNil(t, cfg.Timeline)
	assert.Equal(t, "timeline", cfg.Timeline.String())
}
