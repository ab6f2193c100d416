// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"fmt"
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

	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	storage := component.MustNewIDWithName("file_storage", "rings")
	for name, want := range map[string]*Config{
		"rank_events": newDefaultConfig(),
		"rank_events/all": {
			Directory: "/var/run/rings", PollInterval: time.Second, Level: "all", Record: "unchanged", DetailOnStall: true,
			RemoveDead: time.Minute, MaxRings: 8, MaxOpenSteps: 4, BatchOps: 100,
			StallAfter: 5 * time.Second, StallRepeat: time.Minute, StateInterval: 7 * time.Second, MembersInterval: 5 * time.Minute, ResumeInterval: 20 * time.Second, StepDeadline: 10 * time.Second,
			GPUClock: "raw", Kernels: "summary", Anchor: AnchorConfig{Function: "all_reduce", Every: 12},
			JobID: "llama", JobName: "Llama pre-training", StorageID: &storage,
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
			require.NoError(t, confmap.Validate(cfg))
			assert.Equal(t, want, cfg)
		})
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"check directory: got an empty string; want the directory of the rings":             func(c *Config) { c.Directory = "" },
		"check poll_interval: got 1ns; want at least 1ms, with a unit":                      func(c *Config) { c.PollInterval = 1 },
		`check level: got "most"; want one of summary, collectives, all`:                    func(c *Config) { c.Level = "most" },
		`check level: got ""; want one of summary, collectives, all`:                        func(c *Config) { c.Level = "" },
		`check record: got "x"; want one of summary, collectives, all, unchanged`:           func(c *Config) { c.Record = "x" },
		`check gpu_clock: got "x"; want one of correct, raw`:                                func(c *Config) { c.GPUClock = "x" },
		`check kernels: got "none"; want one of operations, summary`:                        func(c *Config) { c.Kernels = "none" },
		"check remove_dead: got -1ns; want 0 to leave rings, or a time":                     func(c *Config) { c.RemoveDead = -1 },
		"check max_rings: got 0; want at least 1":                                           func(c *Config) { c.MaxRings = 0 },
		"check max_open_steps: got 0; want at least 1":                                      func(c *Config) { c.MaxOpenSteps = 0 },
		"check batch_ops: got 0; want at least 1":                                           func(c *Config) { c.BatchOps = 0 },
		"check max_rings: got 1000000000; want at most 4096":                                func(c *Config) { c.MaxRings = 1000000000 },
		"check max_open_steps: got 1000000000; want at most 65536":                          func(c *Config) { c.MaxOpenSteps = 1000000000 },
		"check batch_ops: got 1000000000; want at most 65536":                               func(c *Config) { c.BatchOps = 1000000000 },
		`check record: got "summary" with level "collectives"; want at least as much as`:    func(c *Config) { c.Record = "summary" },
		`check record: got "collectives" with level "all"; want at least as much as level`:  func(c *Config) { c.Level, c.Record = "all", "collectives" },
		"check stall_after: got 0s; want at least 1ms, with a unit":                         func(c *Config) { c.StallAfter = 0 },
		"check state_interval: got -1s; want 0 for never, or at least 1ms, with a unit":     func(c *Config) { c.StateInterval = -time.Second },
		"check members_interval: got 2ns; want 0 for never, or at least 1ms, with a unit":   func(c *Config) { c.MembersInterval = 2 },
		"check state_interval: got 2ns; want 0 for never, or at least 1ms, with a unit":     func(c *Config) { c.StateInterval = 2 },
		"check stall_repeat: got 0s; want at least 1ms, with a unit":                        func(c *Config) { c.StallRepeat = 0 },
		"check step_deadline: got 0s; want at least 1ms, with a unit":                       func(c *Config) { c.StepDeadline = 0 },
		"check anchor::every: got -1; want 0 to find it out, or a count":                    func(c *Config) { c.Anchor.Every = -1 },
		"check anchor::function: got an empty string with every; want a collective's name":  func(c *Config) { c.Anchor.Every = 3 },
		`check anchor::every: got 0 with function "all_reduce"; want how many of them make`: func(c *Config) { c.Anchor.Function = "all_reduce" },
		`check anchor::function: got "nonsense"; want one of all_reduce`:                    func(c *Config) { c.Anchor = AnchorConfig{Function: "nonsense", Every: 3} },
		"retry_on_failure: max_interval value must be greater than or equal to 0":           func(c *Config) { c.RetryOnFailure.MaxInterval = -1 },
	} {
		t.Run(want, func(t *testing.T) {
			cfg := newDefaultConfig()
			require.NoError(t, confmap.Validate(cfg))
			spoil(cfg)
			assert.ErrorContains(t, confmap.Validate(cfg), want)
		})
	}
}

func TestWhatRanksAreAskedToRecord(t *testing.T) {
	for _, tt := range []struct {
		level, record string
		want          ring.Level
		ask           bool
	}{
		{"summary", "", ring.LevelSummary, true},
		{"collectives", "all", ring.LevelAll, true},
		{"all", "unchanged", 0, false},
	} {
		got, ask := (&Config{Level: tt.level, Record: tt.record}).record()
		assert.Equal(t, tt.want, got)
		assert.Equal(t, tt.ask, ask)
	}
}

func TestEngineIsToldEverything(t *testing.T) {
	cfg := newDefaultConfig()
	want := rankevents.DefaultConfig()
	assert.Equal(t, want, cfg.engine())
	cfg.GPUClock, cfg.Kernels, cfg.Level, cfg.JobID = clockRaw, kernelSummary, "all", "j"
	want.RawGPUClock, want.Kernels, want.Level, want.JobID = true, rankevents.KernelSummary, ring.LevelAll, "j"
	assert.Equal(t, want, cfg.engine())
}

// keys returns every key of the configuration with its default, nested keys
// joined by "::".
func keys(prefix string, v reflect.Value) map[string]any {
	found := map[string]any{}
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("mapstructure")
		if key == "" {
			continue
		}
		found[prefix+key] = v.Field(i).Interface()
		if v.Field(i).Kind() == reflect.Struct {
			for nested, value := range keys(prefix+key+"::", v.Field(i)) {
				found[nested] = value
			}
		}
	}
	return found
}

func TestEveryKeyIsDocumentedWithItsDefault(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	all := keys("", reflect.ValueOf(newDefaultConfig()).Elem())
	require.Contains(t, all, "anchor::every")
	for key, value := range all {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(key) + "` \\| (.*?) \\| ").FindStringSubmatch(string(readme))
		require.NotNil(t, row, "README.md lists %s", key)
		documented := strings.Trim(row[1], "`")
		switch v := value.(type) {
		case time.Duration:
			parsed, err := time.ParseDuration(documented)
			require.NoError(t, err, key)
			assert.Equal(t, v, parsed, key)
		case bool, int, int64, float64:
			assert.Equal(t, fmt.Sprint(v), documented, key)
		case string:
			if v == "" {
				v = "empty"
			}
			assert.Equal(t, v, documented, key)
		}
	}
}
