// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
)

func TestLoadConfig(t *testing.T) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	all, id := newDefaultConfig(), component.MustNewID("jobs")
	all.Brokers, all.GroupID, all.GroupInstanceID, all.SessionTimeout = []string{"kafka:9092"}, "mine", "node-7", 30*time.Second
	all.InitialOffset, all.BatchBytes, all.CommitInterval, all.JobsID = "latest", 1_000_000, 5*time.Second, &id
	all.Traces.Topic, all.Logs.Topic = "spans", "events"
	all.Hold = HoldConfig{Steps: 100, Time: 3 * time.Minute, Idle: time.Hour}
	all.Retry.MaxInterval = time.Second
	clocks, timeline := newDefaultConfig(), component.MustNewID("timeline")
	clocks.Read, clocks.TimelineID, clocks.Logs.Topic = "all", &timeline, "lockstep-clocks"
	for name, want := range map[string]*Config{"job_kafka": newDefaultConfig(), "job_kafka/all": all, "job_kafka/clocks": clocks} {
		sub, err := cm.Sub(name)
		require.NoError(t, err)
		cfg := NewFactory().CreateDefaultConfig()
		require.NoError(t, sub.Unmarshal(cfg))
		assert.Equal(t, want, cfg, name)
		assert.NoError(t, confmap.Validate(cfg))
	}
}

func TestValidate_EachField_IsNamed(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		`check traces::topic: got "a" for logs as well; want two topics`:  func(c *Config) { c.Traces.Topic, c.Logs.Topic = "a", "a" },
		`check logs::topic: got ""; want ` + kafka.LegalNames:             func(c *Config) { c.Logs.Topic = "" },
		`check traces::topic: got "a b"; want ` + kafka.LegalNames:        func(c *Config) { c.Traces.Topic = "a b" },
		`check group_instance_id: got "node/7"; want ` + kafka.LegalNames: func(c *Config) { c.GroupInstanceID = "node/7" },
		"check group_id: got none; want one":                              func(c *Config) { c.GroupID = "" },
		"check session_timeout: got 1ms; want 6s or more":                 func(c *Config) { c.SessionTimeout = time.Millisecond },
		`check initial_offset: got "now"; want earliest or latest`:        func(c *Config) { c.InitialOffset = "now" },
		"check batch_bytes: got 1; want 10000 to 268435456":               func(c *Config) { c.BatchBytes = 1 },
		"check hold::steps: got -1; want 0 to 16383":                      func(c *Config) { c.Hold.Steps = -1 },
		"check hold::time: got -1s; want 0s or more":                      func(c *Config) { c.Hold.Time = -time.Second },
		"check hold::idle: got 1s; want hold::time (2m0s) or more":        func(c *Config) { c.Hold.Idle = time.Second },
		"check commit_interval: got 0s; want more than 0s":                func(c *Config) { c.CommitInterval = 0 },
		`check read: got "some"; want group or all`:                       func(c *Config) { c.Read = "some" },
		"check jobs: got jobs with read: all; want none, since no partition goes to another collector": func(c *Config) {
			id := component.MustNewID("jobs")
			c.Read, c.JobsID = "all", &id
		},
	} {
		c := newDefaultConfig()
		change(c)
		assert.EqualError(t, c.Validate(), want)
	}
}
