// SPDX-License-Identifier: Apache-2.0

package findingsconnector

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
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for name, want := range map[string]*Config{
		"findings": newDefaultConfig(),
		"findings/all": {
			MaxOpenFindings: 10, CleanSteps: 5, CloseAfter: time.Minute,
			FlushInterval: time.Second, MaxSeries: 50, SeriesExpiration: time.Hour,
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
	cfg := &Config{SeriesExpiration: -1}
	err := cfg.Validate()
	for _, want := range []string{
		"check max_open_findings: got 0; want at least 1",
		"check flush_interval: got 0s; want more than 0",
		"check max_series: got 0; want at least 1",
		"check series_expiration: got -1ns; want 0 or more",
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
