// SPDX-License-Identifier: Apache-2.0

package epochcommitreceiver

import (
	"path/filepath"
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
	all := newDefaultConfig()
	all.NetAddr.Endpoint, all.Interval, all.Heartbeat, all.Silent = "10.0.0.1:13181", 5*time.Second, time.Minute, time.Hour
	all.MaxJobs, all.MaxDomains, all.Node = 10, 20, "node7"
	for name, want := range map[string]*Config{"epoch_commit": newDefaultConfig(), "epoch_commit/all": all} {
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
		"check endpoint: got none; want host:port, such as localhost:13181":           func(c *Config) { c.NetAddr.Endpoint = "" },
		"check interval: got 10ms; want at least 100ms, with a unit":                  func(c *Config) { c.Interval = 10 * time.Millisecond },
		"check heartbeat: got 500ms; want at least interval, 1s":                      func(c *Config) { c.Heartbeat = 500 * time.Millisecond },
		"check silent: got 1s; want at least 1m, with a unit":                         func(c *Config) { c.Silent = time.Second },
		"check max_jobs: got 0; want 1 to 1048576":                                    func(c *Config) { c.MaxJobs = 0 },
		"check max_domains: got 4194305; want 1 to 4194304":                           func(c *Config) { c.MaxDomains = 4194305 },
		"check write_timeout: got 5s; want more than 10s, for which answers may wait": func(c *Config) { c.WriteTimeout = 5 * time.Second },
		"check read_timeout: got 10s; want more than 10s, for which answers may wait": func(c *Config) { c.ReadTimeout = 10 * time.Second },
	} {
		cfg := newDefaultConfig()
		require.NoError(t, cfg.Validate())
		change(cfg)
		require.EqualError(t, cfg.Validate(), want)
	}
}
