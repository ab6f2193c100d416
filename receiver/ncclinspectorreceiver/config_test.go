// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

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
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	least := newDefaultConfig()
	least.Include = []string{"/var/log/nccl-inspector-17"}
	storage := component.MustNewIDWithName("file_storage", "inspector")
	for name, want := range map[string]*Config{
		"nccl_inspector": least,
		"nccl_inspector/all": {
			Include: []string{"/var/log/nccl", "/nodes/*/nccl-inspector-17"},
			Exclude: []string{"*.tmp"},
			Mode:    "once", PollInterval: 5 * time.Second, StartAt: "end", CloseAfter: time.Minute, StorageID: &storage,
			JobID: "llama", JobName: "Llama pre-training", WorldSize: 16, WorldWait: 20 * time.Second,
			Anchor: AnchorConfig{Function: "all_reduce", Every: 4}, StepWait: time.Second,
			MaxFiles: 100, MaxLineBytes: 65536, MaxHeld: 1000, MaxSeries: 500, BatchOps: 50,
			RetryOnFailure: configretry.BackOffConfig{
				Enabled: true, InitialInterval: time.Second, RandomizationFactor: 0.1,
				Multiplier: 2, MaxInterval: 10 * time.Second, MaxElapsedTime: time.Minute,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sub, err := cm.Sub(name)
			require.NoError(t, err)
			cfg := NewFactory().CreateDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			assert.Equal(t, want, cfg)
		})
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"check include: got no entry; want at least one file, directory or glob": func(c *Config) { c.Include = nil },
		"check include[1]: got an empty string; want a file, directory or glob":  func(c *Config) { c.Include = []string{"a", ""} },
		`check exclude[0]: got "[a"; want a glob`:                                func(c *Config) { c.Exclude = []string{"[a"} },
		`check mode: got "twice"; want one of once, watch`:                       func(c *Config) { c.Mode = "twice" },
		`check start_at: got "middle"; want one of beginning, end`:               func(c *Config) { c.StartAt = "middle" },
		`check start_at: got "end" with mode "once", which would read nothing`:   func(c *Config) { c.StartAt, c.Mode = "end", "once" },
		"check poll_interval: got 5ns; want at least 1ms, with a unit":           func(c *Config) { c.PollInterval = 5 },
		"check close_after: got 0s; want at least 1ms":                           func(c *Config) { c.CloseAfter = 0 },
		"check world_wait: got -1s; want at least 0s":                            func(c *Config) { c.WorldWait = -time.Second },
		"check step_wait: got -1s; want at least 0s":                             func(c *Config) { c.StepWait = -time.Second },
		"check world_size: got -1; want 0 for unknown, or the number of ranks":   func(c *Config) { c.WorldSize = -1 },
		`check anchor::function: got "AllReduce"; want one of all_reduce`:        func(c *Config) { c.Anchor = AnchorConfig{"AllReduce", 1} },
		`check anchor::function: got ""; want one of all_reduce`:                 func(c *Config) { c.Anchor = AnchorConfig{"", 1} },
		`check anchor::every: got 0 with function "all_reduce"; want how many`:   func(c *Config) { c.Anchor = AnchorConfig{"all_reduce", 0} },
		"check max_files: got 0; want at least 1":                                func(c *Config) { c.MaxFiles = 0 },
		"check max_line_bytes: got 4095; want at least 4096":                     func(c *Config) { c.MaxLineBytes = 4095 },
		"check max_held: got 1048577; want at most 1048576":                      func(c *Config) { c.MaxHeld = 1<<20 + 1 },
		"check max_series: got 0; want at least 1":                               func(c *Config) { c.MaxSeries = 0 },
		"check batch_ops: got 65537; want at most 65536":                         func(c *Config) { c.BatchOps = 1<<16 + 1 },
	} {
		t.Run(want, func(t *testing.T) {
			cfg := newDefaultConfig()
			cfg.Include = []string{"logs"}
			require.NoError(t, confmap.Validate(cfg))
			spoil(cfg)
			assert.ErrorContains(t, confmap.Validate(cfg), want)
		})
	}
}

func TestReadmeNamesEveryKey(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, key := range keys(reflect.TypeFor[Config](), "") {
		assert.Regexp(t, "(?m)^\\| `"+regexp.QuoteMeta(key)+"` \\|", string(readme))
	}
}

func keys(of reflect.Type, prefix string) (out []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name := strings.Split(f.Tag.Get("mapstructure"), ",")[0]
		if name == "" {
			continue
		}
		out = append(out, prefix+name)
		if f.Type.Kind() == reflect.Struct {
			out = append(out, keys(f.Type, prefix+name+"::")...)
		}
	}
	return out
}
