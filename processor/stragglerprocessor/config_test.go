// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/lockstep-otel/lockstep/internal/stragglerconfig"
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
	assert.Equal(t, newDefaultConfig(), load(t, "straggler"))
	assert.False(t, load(t, "straggler").Hold.HasValue(), "nothing is held unless asked for")

	held := load(t, "straggler/hold")
	require.True(t, held.Hold.HasValue())
	assert.Equal(t, &HoldConfig{MaxSpans: defaultHeldSpans, FlushInterval: time.Second}, held.Hold.Get())

	all := load(t, "straggler/all")
	assert.Equal(t, &HoldConfig{MaxSpans: 10, FlushInterval: time.Minute}, all.Hold.Get())
	assert.False(t, all.Histograms)
	assert.Equal(t, 8, all.Analysis.Window)
	assert.Equal(t, "kair", all.Analysis.Method)
	assert.True(t, all.Analysis.Rhythm)
	assert.False(t, load(t, "straggler").Analysis.Rhythm, "nothing is written of it")
}

func TestValidateNamesEveryFault(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.Analysis.Window = 0
	require.ErrorContains(t, cfg.Validate(), "check window: got 0; want at least 1")
	cfg.Analysis.Method = "median"
	require.ErrorContains(t, cfg.Validate(), `check method: got "median"; want lockstep or kair`)
	cfg.Analysis.Method = ""
	h := cfg.Hold.GetOrInsertDefault()
	h.MaxSpans, h.FlushInterval = 0, 0
	err := cfg.Validate()
	require.ErrorContains(t, err, "check hold::max_spans: got 0; want at least 1")
	require.ErrorContains(t, err, "check hold::flush_interval: got 0s; want more than 0")
}

func TestEveryKeyIsDocumented(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for prefix, typ := range map[string]reflect.Type{
		"": reflect.TypeFor[Config](), " ": reflect.TypeFor[stragglerconfig.Config](), "hold::": reflect.TypeFor[HoldConfig](),
	} {
		for f := range typ.Fields() {
			key := f.Tag.Get("mapstructure")
			if key == "" || key == ",squash" {
				continue
			}
			if prefix == "hold::" {
				key = prefix + key
			}
			assert.Contains(t, string(readme), "| `"+key+"` |")
		}
	}
}
