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
	all.MaxJobs, all.MaxDomains, all.MaxConnections, all.Node = 10, 20, 30, "node7"
	all.PerPeer = PeerConfig{MaxJobs: 1, MaxDomains: 2, MaxConnections: 3, MaxMessages: 4, MessagesPerSecond: 5.5}
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
		"check max_connections: got 0; want 1 or more":                                func(c *Config) { c.MaxConnections = 0 },
		"check per_peer::max_jobs: got 0; want 1 or more":                             func(c *Config) { c.PerPeer.MaxJobs = 0 },
		"check per_peer::max_domains: got 0; want 1 or more":                          func(c *Config) { c.PerPeer.MaxDomains = 0 },
		"check per_peer::max_connections: got 0; want 1 or more":                      func(c *Config) { c.PerPeer.MaxConnections = 0 },
		"check per_peer::max_messages: got -1; want 1 or more":                        func(c *Config) { c.PerPeer.MaxMessages = -1 },
		"check per_peer::messages_per_second: got 0; want more than 0":                func(c *Config) { c.PerPeer.MessagesPerSecond = 0 },
		"check read_header_timeout: got 0s, and no read_timeout; want more than 0 for one of them, with a unit": func(c *Config) {
			c.ReadHeaderTimeout, c.ReadTimeout = 0, 0
		},
		"check read_timeout: got 10s; want more than 10s, for which answers may wait": func(c *Config) { c.ReadTimeout = 10 * time.Second },
	} {
		cfg := newDefaultConfig()
		require.NoError(t, cfg.Validate())
		change(cfg)
		require.EqualError(t, cfg.Validate(), want)
	}
}
