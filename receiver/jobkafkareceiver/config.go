// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configretry"

	"github.com/lockstep-otel/lockstep/internal/component/kafka"
	"github.com/lockstep-otel/lockstep/internal/offsets"
)

// Config configures the job Kafka receiver.
type Config struct {
	kafka.ClientConfig `mapstructure:",squash"`
	// Traces is where spans come from.
	Traces TopicConfig `mapstructure:"traces"`
	// Logs is where log records come from. With as many partitions as the topic of spans, a collector gets both
	// of a job.
	Logs TopicConfig `mapstructure:"logs"`
	// Read is which partitions are read: those that the group assigns (group), or all of them, from their first record
	// and without a group (all).
	Read string `mapstructure:"read"`
	// GroupID names the collectors that share the partitions.
	GroupID string `mapstructure:"group_id"`
	// GroupInstanceID names this collector over its restarts, so that a restart within SessionTimeout moves no
	// partition; "": a restart is another collector.
	GroupInstanceID string `mapstructure:"group_instance_id"`
	// SessionTimeout is after how long without a heartbeat the others get a collector's partitions.
	SessionTimeout time.Duration `mapstructure:"session_timeout"`
	// InitialOffset is where the group begins to read a partition: earliest or latest.
	InitialOffset string `mapstructure:"initial_offset"`
	// BatchBytes is about how many bytes of records are given to the next component at once.
	BatchBytes int `mapstructure:"batch_bytes"`
	// Hold is what is read again after a kill; none: only what was not given yet.
	Hold HoldConfig `mapstructure:"hold"`
	// CommitInterval is how often offsets are committed.
	CommitInterval time.Duration `mapstructure:"commit_interval"`
	// JobsID names an extension that has analyses forget the jobs that another collector gets; nil: none does.
	JobsID *component.ID `mapstructure:"jobs"`
	// TimelineID names a timeline extension that several collectors share; nil: none. Where all partitions are read, it
	// is ready once it has what they had at the start. A member of a group waits for that, and the one that has partition
	// 0 of its first topic solves for the clocks.
	TimelineID *component.ID `mapstructure:"timeline"`
	// Retry is how records are given again that the next component refuses for now.
	Retry configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	_ struct{}
}

// TopicConfig is a topic.
type TopicConfig struct {
	Topic string `mapstructure:"topic"`

	_ struct{}
}

// HoldConfig configures up to which offset records are needed again after a kill.
type HoldConfig struct {
	// Steps is how many last steps of each job are read again: more than the window of the analysis.
	Steps int `mapstructure:"steps"`
	// Time is for how long after its last record a step is read again: longer than the deadline of the analysis.
	Time time.Duration `mapstructure:"time"`
	// Idle is after how long without records nothing of a job is read again.
	Idle time.Duration `mapstructure:"idle"`

	_ struct{}
}

// Values of settings.
const (
	readGroup, readAll = "group", "all"
	earliest, latest   = "earliest", "latest"
	defaultTraceTopic  = "lockstep-jobs"
	defaultLogTopic    = "lockstep-job-events"
	defaultGroup       = "lockstep-concluders"
	defaultSession     = 10 * time.Second // Kafka's
	leastSession       = 6 * time.Second  // brokers refuse less by default (group.min.session.timeout.ms)
	defaultBatchBytes  = 4_000_000
	leastBatchBytes    = 10_000
	mostBatchBytes     = 256 << 20
	defaultCommit      = time.Second
	defaultHoldSteps   = 80 // the window of straggler is 64 steps
	defaultHoldTime    = 2 * time.Minute
	defaultHoldIdle    = 15 * time.Minute
	maxStepsPerJob     = 1 << 14
	maxJobsOfPartition = 1 << 10
	maxStepsHeld       = 1 << 17 // of a partition: about 16 MB
)

var defaultRetry = configretry.BackOffConfig{
	Enabled: true, InitialInterval: 200 * time.Millisecond, Multiplier: 1.5, RandomizationFactor: 0.5, MaxInterval: 5 * time.Second,
}

func newDefaultConfig() *Config {
	return &Config{
		ClientConfig: kafka.NewClientConfig("lockstep"),
		Traces:       TopicConfig{Topic: defaultTraceTopic}, Logs: TopicConfig{Topic: defaultLogTopic},
		Read: readGroup, GroupID: defaultGroup, SessionTimeout: defaultSession, InitialOffset: earliest, BatchBytes: defaultBatchBytes,
		Hold:           HoldConfig{Steps: defaultHoldSteps, Time: defaultHoldTime, Idle: defaultHoldIdle},
		CommitInterval: defaultCommit, Retry: defaultRetry,
	}
}

// Validate reports every field that cannot work.
func (c *Config) Validate() error {
	errs := []error{c.ClientConfig.Validate()}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...)) //nolint:err113 // the value is the message
		}
	}
	check(kafka.LegalName(c.Traces.Topic), "check traces::topic: got %q; want %s", c.Traces.Topic, kafka.LegalNames)
	check(kafka.LegalName(c.Logs.Topic), "check logs::topic: got %q; want %s", c.Logs.Topic, kafka.LegalNames)
	check(c.Traces.Topic != c.Logs.Topic, "check traces::topic: got %q for logs as well; want two topics", c.Traces.Topic)
	check(c.Read == readGroup || c.Read == readAll, "check read: got %q; want %s or %s", c.Read, readGroup, readAll)
	check(c.Read != readAll || c.JobsID == nil, "check jobs: got %v with read: all; want none, since no partition goes to another collector", c.JobsID)
	check(c.GroupID != "", "check group_id: got none; want one")
	check(c.GroupInstanceID == "" || kafka.LegalName(c.GroupInstanceID), "check group_instance_id: got %q; want %s", c.GroupInstanceID, kafka.LegalNames)
	check(c.SessionTimeout >= leastSession, "check session_timeout: got %v; want %v or more", c.SessionTimeout, leastSession)
	check(c.InitialOffset == earliest || c.InitialOffset == latest, "check initial_offset: got %q; want %s or %s", c.InitialOffset, earliest, latest)
	check(c.BatchBytes >= leastBatchBytes && c.BatchBytes <= mostBatchBytes, "check batch_bytes: got %d; want %d to %d", c.BatchBytes, leastBatchBytes, mostBatchBytes)
	check(c.Hold.Steps >= 0 && c.Hold.Steps < maxStepsPerJob, "check hold::steps: got %d; want 0 to %d", c.Hold.Steps, maxStepsPerJob-1)
	check(c.Hold.Time >= 0, "check hold::time: got %v; want 0s or more", c.Hold.Time)
	check(c.Hold.Idle >= c.Hold.Time, "check hold::idle: got %v; want hold::time (%v) or more", c.Hold.Idle, c.Hold.Time)
	check(c.CommitInterval > 0, "check commit_interval: got %v; want more than 0s", c.CommitInterval)
	return errors.Join(errs...)
}

// pauseSlack is for how long after its time a tick may come while nothing stands still.
const pauseSlack = 5 * time.Second

// tracker returns how partitions are followed. Each is asked every CommitInterval: where it was not, the process was
// stopped, or the next component took nothing.
func (c *Config) tracker() offsets.Config {
	h := c.Hold
	if c.Read == readAll { // nothing is committed
		h = HoldConfig{}
	}
	return offsets.Config{
		Steps: h.Steps, Time: h.Time, Idle: h.Idle, Pause: c.CommitInterval + pauseSlack,
		MaxSteps: maxStepsPerJob, MaxJobs: maxJobsOfPartition, MaxAll: maxStepsHeld,
	}
}
