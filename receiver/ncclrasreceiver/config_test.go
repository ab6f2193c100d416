// SPDX-License-Identifier: Apache-2.0

package ncclrasreceiver

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
		"nccl_ras": newDefaultConfig(),
		"nccl_ras/all": {
			Endpoints: []string{"10.0.0.1:28028", "[fd00::1]:900"}, PollInterval: 5 * time.Second, Timeout: 20 * time.Second, Wait: 10 * time.Second,
			Heartbeat: 2 * time.Minute, MaxBytes: 1 << 20, MaxSeries: 100, JobID: "llama-4711", JobName: "llama",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sub, err := cm.Sub(name)
			require.NoError(t, err)
			cfg := NewFactory().CreateDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			assert.Equal(t, want, cfg)
			assert.NoError(t, confmap.Validate(cfg))
		})
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"check endpoints: got none; want at least one, as localhost:28028":     func(c *Config) { c.Endpoints = nil },
		"check endpoints: got 65; want at most 64":                             func(c *Config) { c.Endpoints = manyEndpoints(65) },
		`check endpoints: got "localhost"; want host:port`:                     func(c *Config) { c.Endpoints = []string{"localhost"} },
		`check endpoints: got ":28028"; want host:port`:                        func(c *Config) { c.Endpoints = []string{":28028"} },
		`check endpoints: got "a:b"; want host:port`:                           func(c *Config) { c.Endpoints = []string{"a:b"} },
		`check endpoints: got "a:0"; want host:port`:                           func(c *Config) { c.Endpoints = []string{"a:0"} },
		"check poll_interval: got 10ns; want at least 100ms, with a unit":      func(c *Config) { c.PollInterval = 10 },
		"check wait: got 0s; want at least 1s, of which NCCL takes whole ones": func(c *Config) { c.Wait = 0 },
		"check timeout: got 5s; want more than wait, 5s":                       func(c *Config) { c.Timeout = c.Wait },
		"check heartbeat: got 1s; want at least poll_interval, 10s":            func(c *Config) { c.Heartbeat = time.Second },
		"check max_bytes: got 0; want 1 to 1073741824":                         func(c *Config) { c.MaxBytes = 0 },
		"check max_bytes: got 1073741825; want 1 to 1073741824":                func(c *Config) { c.MaxBytes = 1<<30 + 1 },
		"check max_series: got -1; want 1 to 1048576":                          func(c *Config) { c.MaxSeries = -1 },
	} {
		cfg := newDefaultConfig()
		change(cfg)
		assert.ErrorContains(t, cfg.Validate(), want)
	}
	assert.NoError(t, newDefaultConfig().Validate())
}

func manyEndpoints(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = "localhost:28028"
	}
	return list
}

func TestReadmeNamesEveryKey(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	fields := reflect.TypeFor[Config]()
	for i := range fields.NumField() {
		if key := fields.Field(i).Tag.Get("mapstructure"); key != "" {
			assert.Contains(t, string(readme), "| `"+key+"` |")
		}
	}
	for _, r := range []string{answerTold, answerQuiet, answerNone, answerFailed, answerTextOnly, answerNoWorld, faultApart, faultEvicted} {
		assert.Contains(t, string(readme), "| `"+r+"` |")
	}
}
