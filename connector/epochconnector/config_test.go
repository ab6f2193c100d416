// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"math"
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
	for name, want := range map[string]*Config{
		"epoch": newDefaultConfig(),
		"epoch/all": {
			Settle: time.Minute, Silent: 5 * time.Minute, CheckInterval: time.Second, FlushInterval: 30 * time.Second, RepeatInterval: time.Minute,
			MaxJobs: 1, MaxDomains: 2, MaxSaves: 3, MaxRegisters: 4, MaxMemoryMiB: 64, MaxFindings: 5, MaxSeries: 6,
			Fleet: FleetConfig{
				Settle: 2 * time.Minute, Silent: 4 * time.Minute, MaxNodes: 7, MaxVersions: 8, MaxRanks: 9, MaxCommunicators: 10, MaxMembers: 11,
				Compatible: map[string][][]string{"kernel": {{"5.15.*", "6.8.0-40-generic"}}, "nic_firmware": {{"*"}}},
			},
			Resume:   ResumeConfig{Silent: 3 * time.Minute, MaxIncarnations: 12, MaxRanks: 13},
			LogLines: LogLinesConfig{Silent: 14 * time.Minute},
			Replicas: ReplicasConfig{Silent: 40 * time.Minute, MaxGroups: 14, MaxRanks: 15},
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
		"check settle: got 0s; want at least 1s, with a unit":                    func(c *Config) { c.Settle = 0 },
		"check silent: got 1m0s; want at least settle":                           func(c *Config) { c.Silent = time.Minute },
		"check check_interval: got 0s; want more than 0":                         func(c *Config) { c.CheckInterval = 0 },
		"check flush_interval: got 0s; want more than 0":                         func(c *Config) { c.FlushInterval = 0 },
		"check repeat_interval: got 0s; want more than 0":                        func(c *Config) { c.RepeatInterval = 0 },
		"check max_jobs: got 0; want at least 1":                                 func(c *Config) { c.MaxJobs = 0 },
		"check max_domains: got 0; want at least 1":                              func(c *Config) { c.MaxDomains = 0 },
		"check max_saves: got 0; want at least 1":                                func(c *Config) { c.MaxSaves = 0 },
		"check max_registers: got 0; want at least 1":                            func(c *Config) { c.MaxRegisters = 0 },
		"check max_memory_mib: got -1; want 0 to 1099511627776":                  func(c *Config) { c.MaxMemoryMiB = -1 },
		"check max_memory_mib: got 9223372036854775807; want 0 to 1099511627776": func(c *Config) { c.MaxMemoryMiB = math.MaxInt },
		"check max_findings: got 0; want at least 1":                             func(c *Config) { c.MaxFindings = 0 },
		"check max_series: got 0; want at least 1":                               func(c *Config) { c.MaxSeries = 0 },
		"check fleet: check settle: got 0s; want at least 1s, with a unit\ncheck max_communicators: got 0; want at least 1": func(c *Config) {
			c.Fleet.Settle, c.Fleet.MaxCommunicators = 0, 0
		},
		"check fleet: check compatible: kernel: set 0: got 0 versions; want 1 to 256": func(c *Config) {
			c.Fleet.Compatible = map[string][][]string{"kernel": {{}}}
		},
		"check resume: check silent: got 0s; want at least 1s\ncheck max_incarnations: got 0; want at least 1\ncheck max_ranks: got -1; want at least 1": func(c *Config) {
			c.Resume = ResumeConfig{MaxRanks: -1}
		},
		"check log_lines: check silent: got 0s; want at least 1s": func(c *Config) { c.LogLines.Silent = 0 },
		"check replicas: check silent: got 0s; want at least 1s, with a unit\ncheck max_groups: got 0; want at least 1\ncheck max_ranks: got -1; want at least 1": func(c *Config) {
			c.Replicas = ReplicasConfig{MaxRanks: -1}
		},
	} {
		cfg := newDefaultConfig()
		change(cfg)
		require.EqualError(t, cfg.Validate(), want)
	}
}
