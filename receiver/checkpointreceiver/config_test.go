// SPDX-License-Identifier: Apache-2.0

package checkpointreceiver

import (
	"fmt"
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
	least := newDefaultConfig()
	least.Roots = []RootConfig{{Path: "/shared/llama", JobID: "llama-4711"}}
	for name, want := range map[string]*Config{
		"checkpoint": least,
		"checkpoint/all": {
			Roots:        []RootConfig{{Path: "/local/llama", JobID: "llama-4711", JobName: "llama", Places: 4, WorldSize: 32}},
			PollInterval: 10 * time.Second, Heartbeat: time.Minute, Timeout: 30 * time.Second, MaxDomains: 1000, Node: "node7",
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
		"check roots: got none; want at least one folder of checkpoints":                    func(c *Config) { c.Roots = nil },
		"check roots: got 65; want at most 64":                                              func(c *Config) { c.Roots = many(65) },
		"check roots: 0: got no path; want one":                                             func(c *Config) { c.Roots[0].Path = "" },
		"check roots: 0: got no job_id; want one: saves of different jobs are not compared": func(c *Config) { c.Roots[0].JobID = "" },
		"check roots: 1: got /c twice; want it once":                                        func(c *Config) { c.Roots = append(c.Roots, c.Roots[0]) },
		"check roots: 0: got places -1; want 0 to 1048576":                                  func(c *Config) { c.Roots[0].Places = -1 },
		"check roots: 0: got world_size 2000000; want 0 to 1048576":                         func(c *Config) { c.Roots[0].WorldSize = 2_000_000 },
		"check poll_interval: got 10ms; want at least 1s, with a unit":                      func(c *Config) { c.PollInterval = 10 * time.Millisecond },
		"check heartbeat: got 5s; want at least poll_interval, 30s":                         func(c *Config) { c.Heartbeat = 5 * time.Second },
		"check timeout: got 0s; want at least 1s, with a unit":                              func(c *Config) { c.Timeout = 0 },
		"check max_domains: got 0; want 1 to 4194304":                                       func(c *Config) { c.MaxDomains = 0 },
	} {
		cfg := newDefaultConfig()
		cfg.Roots = []RootConfig{{Path: "/c", JobID: "job"}}
		require.NoError(t, cfg.Validate())
		change(cfg)
		require.EqualError(t, cfg.Validate(), want)
	}
}

func many(n int) (roots []RootConfig) {
	for i := range n {
		roots = append(roots, RootConfig{Path: fmt.Sprint("/c", i), JobID: "job"})
	}
	return roots
}
