// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver/internal/metadatatest"
)

func load(t *testing.T, name string) *Config {
	t.Helper()
	conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	sub, err := conf.Sub(name)
	require.NoError(t, err)
	cfg := newDefaultConfig()
	require.NoError(t, sub.Unmarshal(cfg))
	return cfg
}

func TestEveryKeyOfTheConfiguration(t *testing.T) {
	plain := load(t, "flight_recorder")
	require.NoError(t, plain.Validate())
	assert.Equal(t, newDefaultConfig(), plain)

	cfg := load(t, "flight_recorder/all")
	require.NoError(t, cfg.Validate())
	want := newDefaultConfig()
	want.Include, want.Exclude = []string{"/dumps/*"}, []string{"*.log"}
	want.RankPattern, want.PollInterval, want.Settle, want.MaxAge = `r(\d+)`, 2*time.Second, 3*time.Second, time.Minute
	want.JobID, want.JobName, want.WorldSize, want.Local, want.HostID = "j", "name", 16, false, "node-7"
	want.Ranks, want.AllRanks = []string{"0-7", "9"}, true
	want.Wait, want.MaxWait, want.Window, want.StallAfter, want.Stacks = 4*time.Second, 5*time.Second, 6*time.Second, 7*time.Second, false
	want.Keep = KeepConfig{Directory: "/kept", MaxBytes: 1000, MaxFiles: 10}
	want.Pull = PullConfig{Interval: 8 * time.Second, Timeout: 9 * time.Second, Endpoints: []EndpointConfig{
		{URL: "http://a:1", Ranks: []string{"3"}}, {URL: "http://r-{rank}:1", Ranks: []string{"0-1"}},
	}}
	want.Trigger.NetAddr.Endpoint, want.Trigger.Pipes, want.Trigger.MinInterval = "localhost:4399", []string{"/tmp/fr_"}, time.Second
	want.MaxFiles, want.MaxFileBytes, want.MaxOpenEvents, want.MaxSeries, want.BatchOps, want.BatchStates = 1, 2, 3, 4, 5, 6
	want.RetryOnFailure.Enabled = false
	assert.Equal(t, want, cfg)
	endpoints, err := cfg.endpoints()
	require.NoError(t, err)
	assert.Equal(t, []frwatch.Endpoint{{URL: "http://a:1", Rank: 3, HasRank: true}, {URL: "http://r-0:1", Rank: 0, HasRank: true}, {URL: "http://r-1:1", Rank: 1, HasRank: true}}, endpoints)
}

func TestWrongConfigurations(t *testing.T) {
	t.Setenv(envJobID, "")
	for text, change := range map[string]func(*Config){
		"include[0]":       func(c *Config) { c.Include = []string{""} },
		"exclude[0]":       func(c *Config) { c.Exclude = []string{"[a"} },
		"rank_pattern":     func(c *Config) { c.RankPattern = "rank" },
		"ranks":            func(c *Config) { c.Ranks = []string{"7-0"} },
		"pull::endpoints":  func(c *Config) { c.Pull.Endpoints = []EndpointConfig{{URL: "file:///x"}} },
		"job_id":           func(c *Config) { c.Pull.Endpoints = []EndpointConfig{{URL: "http://x"}} },
		"pull::interval":   func(c *Config) { c.Pull.Interval = -1 },
		"poll_interval":    func(c *Config) { c.PollInterval = 0 },
		"max_wait":         func(c *Config) { c.Wait, c.MaxWait = time.Minute, time.Second },
		"window":           func(c *Config) { c.Window = 0 },
		"world_size":       func(c *Config) { c.WorldSize = -1 },
		"max_files":        func(c *Config) { c.MaxFiles = 0 },
		"keep::max_bytes":  func(c *Config) { c.Keep.MaxBytes = 0 },
		"trigger::pipes":   func(c *Config) { c.Trigger.Pipes = []string{""} },
		"min_interval":     func(c *Config) { c.Trigger.MinInterval = -1 },
		"max_file_bytes":   func(c *Config) { c.MaxFileBytes = 0 },
		"batch_states":     func(c *Config) { c.BatchStates = 0 },
		"max_open_events":  func(c *Config) { c.MaxOpenEvents = 0 },
		"pull::timeout":    func(c *Config) { c.Pull.Timeout = 0 },
		"keep::max_files":  func(c *Config) { c.Keep.MaxFiles = -1 },
		"got \"r(\"; want": func(c *Config) { c.RankPattern = "r(" },
	} {
		cfg := newDefaultConfig()
		change(cfg)
		assert.ErrorContains(t, cfg.Validate(), text)
	}
}

func TestRankPattern(t *testing.T) {
	cfg := newDefaultConfig()
	cfg.RankPattern = `-r(\d+)-`
	name, err := cfg.nameFunc()
	require.NoError(t, err)
	rank, prefix, ok := name("/d/dump-r12-20261123")
	assert.True(t, ok)
	assert.EqualValues(t, 12, rank)
	assert.Equal(t, "/d/dump-r", prefix)
	_, _, ok = name("/d/dump-12")
	assert.False(t, ok)
}

func TestPatternsWithoutInclude(t *testing.T) {
	cfg := newDefaultConfig()
	assert.NotEmpty(t, cfg.patterns(), "where PyTorch writes")
	cfg.Pull.Endpoints = []EndpointConfig{{URL: "http://x"}}
	assert.Empty(t, cfg.patterns(), "who asks servers need not look for files")
}

// startFailing returns the error of a start, and shuts down what was started.
func startFailing(t *testing.T, cfg *Config) error {
	t.Helper()
	tel := componenttest.NewTelemetry()
	r, err := NewFactory().CreateLogs(t.Context(), metadatatest.NewSettings(tel), cfg, consumertest.NewNop())
	require.NoError(t, err)
	err = r.Start(t.Context(), componenttest.NewNopHost())
	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, tel.Shutdown(t.Context()))
	return err
}

var _ component.Config = (*Config)(nil)
