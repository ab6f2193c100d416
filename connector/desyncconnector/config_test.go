// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestConfigIsRead(t *testing.T) {
	cfg := newDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"limit_factor": 5, "limit_floor": "3s", "min_gaps": 50, "start_limit": "20m", "held_limit": "1h", "state_ttl": "20s",
		"dump_wait": "1m", "forget": "1h", "check_interval": "1s", "flush_interval": "30s", "repeat_interval": "1m",
		"max_jobs": 2, "max_ranks": 8, "max_comms": 4, "max_memory_mib": 4, "max_series": 10,
	}).Unmarshal(cfg))
	assert.Equal(t, &Config{
		LimitFactor: 5, LimitFloor: 3 * time.Second, MinGaps: 50, StartLimit: 20 * time.Minute, HeldLimit: time.Hour,
		StateTTL: 20 * time.Second, DumpWait: time.Minute, Forget: time.Hour, CheckInterval: time.Second,
		FlushInterval: 30 * time.Second, RepeatInterval: time.Minute, MaxJobs: 2, MaxRanks: 8, MaxComms: 4, MaxMemoryMiB: 4, MaxSeries: 10,
	}, cfg)
	require.NoError(t, cfg.Validate())
	w := cfg.watch()
	assert.InDelta(t, 5, w.Factor, 0)
	assert.Equal(t, []time.Duration{3 * time.Second, 20 * time.Minute, time.Hour}, []time.Duration{w.Floor, w.StartLimit, w.HeldLimit})
	assert.Equal(t, []int{50, 2, 8, 4, 4 << 20, 8}, []int{w.MinGaps, w.MaxJobs, w.MaxRanks, w.MaxComms, w.MaxBytes, w.Analysis.MaxRanks})
}

func TestConfigOutOfRange(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"limit_factor":    func(c *Config) { c.LimitFactor = 0.5 },
		"limit_floor":     func(c *Config) { c.LimitFloor = time.Millisecond },
		"min_gaps":        func(c *Config) { c.MinGaps = 0 },
		"start_limit":     func(c *Config) { c.StartLimit = time.Second },
		"held_limit":      func(c *Config) { c.HeldLimit = 0 },
		"state_ttl":       func(c *Config) { c.StateTTL = 0 },
		"dump_wait":       func(c *Config) { c.DumpWait = -1 },
		"forget":          func(c *Config) { c.Forget = time.Second },
		"check_interval":  func(c *Config) { c.CheckInterval = 0 },
		"flush_interval":  func(c *Config) { c.FlushInterval = 0 },
		"repeat_interval": func(c *Config) { c.RepeatInterval = 0 },
		"max_jobs":        func(c *Config) { c.MaxJobs = 0 },
		"max_ranks":       func(c *Config) { c.MaxRanks = 0 },
		"max_comms":       func(c *Config) { c.MaxComms = 0 },
		"max_memory_mib":  func(c *Config) { c.MaxMemoryMiB = -1 },
		"max_series":      func(c *Config) { c.MaxSeries = 0 },
	} {
		cfg := newDefaultConfig()
		change(cfg)
		assert.ErrorContains(t, cfg.Validate(), "check "+field+":", field)
	}
}

func TestConfig_MemoryBeyondAllBytes_NamesItsKey(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.MaxMemoryMiB = math.MaxInt
	assert.EqualError(t, cfg.Validate(), "check max_memory_mib: got 9223372036854775807; want 0 to 1099511627776")
}
