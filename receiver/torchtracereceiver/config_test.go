// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

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
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	least := newDefaultConfig()
	least.Include = []string{"/var/lib/traces"}
	for name, want := range map[string]*Config{
		"torch_trace": least,
		"torch_trace/all": {
			Include: []string{"/var/lib/traces", "/data/*/rank*.json.gz"},
			Exclude: []string{"*.tmp"},
			Mode:    "watch", PollInterval: time.Second,
			JobID: "llama", JobName: "Llama pre-training",
			RankPattern: `r(\d+)`, StepPattern: `iteration (\d+)`,
			WorldSize: 16, HostOps: true,
			MaxEventBytes: 65536, MaxEvents: 1000, MaxFileBytes: 1048576, MaxFiles: 100, BatchOps: 500,
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
		"check include: got no entry; want at least one file, directory or glob":  func(c *Config) { c.Include = nil },
		"check include[1]: got an empty string; want a file, directory or glob":   func(c *Config) { c.Include = []string{"a", ""} },
		`check include[0]: got "[a"; want a glob`:                                 func(c *Config) { c.Include = []string{"[a"} },
		`check exclude[1]: got "[a"; want a glob`:                                 func(c *Config) { c.Exclude = []string{"a", "[a"} },
		`check mode: got "twice"; want "once" or "watch"`:                         func(c *Config) { c.Mode = "twice" },
		"check poll_interval: got 0s; want more than 0":                           func(c *Config) { c.PollInterval = 0 },
		`check rank_pattern: got "("; want a regular expression`:                  func(c *Config) { c.RankPattern = "(" },
		`check rank_pattern: got "rank" without a group; want the number in`:      func(c *Config) { c.RankPattern = "rank" },
		`check step_pattern: got ")"; want a regular expression`:                  func(c *Config) { c.StepPattern = ")" },
		"check world_size: got -1; want 0 for unknown, or the number of ranks":    func(c *Config) { c.WorldSize = -1 },
		"check max_event_bytes: got 4095; want at least 4096":                     func(c *Config) { c.MaxEventBytes = 4095 },
		"check max_events: got 0; want at least 1":                                func(c *Config) { c.MaxEvents = 0 },
		"check max_file_bytes: got 0; want at least 1":                            func(c *Config) { c.MaxFileBytes = 0 },
		"check max_files: got -1; want at least 1":                                func(c *Config) { c.MaxFiles = -1 },
		"check batch_ops: got 0; want at least 1":                                 func(c *Config) { c.BatchOps = 0 },
		"retry_on_failure: max_interval value must be greater than or equal to 0": func(c *Config) { c.RetryOnFailure.MaxInterval = -1 },
	} {
		t.Run(want, func(t *testing.T) {
			cfg := newDefaultConfig()
			cfg.Include = []string{"traces"}
			require.NoError(t, confmap.Validate(cfg))
			spoil(cfg)
			assert.ErrorContains(t, confmap.Validate(cfg), want)
		})
	}
}

func TestValidateReportsAllFaults(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.Mode, cfg.BatchOps = "", 0
	err := cfg.Validate()
	for _, field := range []string{"include", "mode", "batch_ops"} {
		assert.ErrorContains(t, err, "check "+field+":")
	}
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
	require.Contains(t, all, "retry_on_failure::max_interval")
	for key, value := range all {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(key) + "` \\| (.*?) \\| ").FindStringSubmatch(string(readme))
		require.NotNil(t, row, "README.md lists %s", key)
		documented := strings.ReplaceAll(strings.Trim(row[1], "`"), `\|`, "|")
		switch v := value.(type) {
		case time.Duration:
			parsed, err := time.ParseDuration(documented)
			require.NoError(t, err, key)
			assert.Equal(t, v, parsed, key)
		case bool, int, int64, float64:
			assert.Equal(t, fmt.Sprint(v), documented, key)
		case string:
			if v != "" {
				assert.Equal(t, v, documented, key)
			}
		}
	}
}

func TestExcludes(t *testing.T) {
	for _, tc := range []struct {
		glob, path string
		want       bool
	}{
		{"*.tmp", "/data/run/rank0.json.tmp", true},
		{"*.tmp", "/data/run.tmp/rank0.json", false},
		{"rank0.json", "/data/run/rank0.json", true},
		{"/data/*/rank0.json", "/data/run/rank0.json", true},
		{"/data/rank0.json", "/data/run/rank0.json", false},
		{"./run/rank0.json", "run/rank0.json", true},
	} {
		cfg := &Config{Exclude: []string{"other", tc.glob}}
		assert.Equal(t, tc.want, cfg.excludes(tc.path), "%s of %s", tc.glob, tc.path)
	}
}
