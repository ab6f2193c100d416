// SPDX-License-Identifier: Apache-2.0

package timelineextension

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
	storage := component.MustNewID("file_storage")
	for name, change := range map[string]func(*Config){
		"timeline": func(*Config) {},
		"timeline/all": func(c *Config) {
			c.NetAddr.Endpoint = "localhost:0"
			c.Storage, c.SaveInterval, c.SolveInterval = &storage, time.Minute, 500*time.Millisecond
			c.Prefer, c.History, c.MaxClocks, c.ForgetAfter = []string{"host:time-1/b/raw"}, 32, 1000, 5*time.Minute
			c.SkewThreshold, c.DriftThreshold, c.SlewLimit, c.HostID = 2*time.Millisecond, 50, 25, "node-1"
			c.State.Chrony = &ChronyConfig{Endpoint: "127.0.0.1:323", Interval: 10 * time.Second}
			c.State.PTP = &PTPConfig{Endpoint: "/run/ptp4l", Domain: 1, Interval: time.Second}
		},
		"timeline/shared": func(c *Config) { c.Shared = true },
		"timeline/quiet": func(c *Config) {
			c.NetAddr.Endpoint = ""
			c.State = StateConfig{Chrony: &ChronyConfig{}, PTP: &PTPConfig{}}
		},
	} {
		want := newDefaultConfig()
		change(want)
		sub, err := cm.Sub(name)
		require.NoError(t, err)
		cfg := NewFactory().CreateDefaultConfig()
		require.NoError(t, sub.Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg), name)
		assert.Equal(t, want, cfg, name)
	}
}

func TestValidate_SharedWithStorage_IsRefused(t *testing.T) {
	cfg, id := newDefaultConfig(), component.MustNewID("file_storage")
	cfg.Shared, cfg.Storage = true, &id
	assert.EqualError(t, cfg.Validate(), "check storage: got file_storage with shared; want none, since models are in Kafka")
}

func TestStateDefaults(t *testing.T) {
	assert.Equal(t, ChronyConfig{Endpoint: "/run/chrony/chronyd.sock", Interval: 16 * time.Second}, (&ChronyConfig{}).withDefaults())
	assert.Equal(t, PTPConfig{Endpoint: "/var/run/ptp4l", Interval: 16 * time.Second}, (&PTPConfig{}).withDefaults())
}

func TestValidateNamesEveryFault(t *testing.T) {
	cfg := &Config{Prefer: []string{""}, State: StateConfig{Chrony: &ChronyConfig{Interval: -1}, PTP: &PTPConfig{Interval: -1}}}
	err := cfg.Validate()
	for _, want := range []string{
		"check save_interval: got 0s; want more than 0", "check solve_interval: got 0s; want more than 0",
		"check prefer: got an empty name; want names of clocks",
		"check history: got 0; want at least 1", "check max_clocks: got 0; want at least 1",
		"check forget_after: got 0s; want more than 0", "check skew_threshold: got 0s; want more than 0",
		"check drift_threshold: got 0; want more than 0", "check slew_limit: got 0; want more than 0",
		"check state::chrony::interval: got -1ns; want 0 or more", "check state::ptp::interval: got -1ns; want 0 or more",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for f := range reflect.TypeFor[Config]().Fields() {
		if key := f.Tag.Get("mapstructure"); key != "" && !strings.HasPrefix(key, ",") {
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
	sub, err := cm.Sub("extensions::timeline")
	require.NoError(t, err)
	require.NotEmpty(t, sub.AllKeys())
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	require.NoError(t, sub.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	assert.Equal(t, "file_storage", cfg.Storage.String())
	assert.NotNil(t, cfg.State.Chrony)
	assert.Nil(t, cfg.State.PTP)
}
