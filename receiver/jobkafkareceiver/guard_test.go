// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
)

// silence has a cluster answer nothing, until release is called.
func silence(t *testing.T, c *kfake.Cluster) (release func()) {
	t.Helper()
	over, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	c.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		<-over.Done()
		return nil, nil, false
	})
	return end
}

// A broker stops in the midst of a step, as by SIGSTOP: its connections stay, and nothing comes. By the time at which
// another collector may have the partition, analyses conclude nothing; they go on once the broker does.
func TestReceiver_BrokerFallsSilent_AnalysesAreSuspended(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	w.step(0, "j", 0, 1)
	cfg := configFor(c)
	r := start(t, cfg, &analysis{})
	eventually(t, "step", func() bool { return r.stepsOf("j")[1] == 1 })
	suspended := func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.suspended }
	release := silence(t, c)
	began := time.Now()
	eventually(t, "analyses are suspended", suspended)
	assert.InDelta(t, cfg.SessionTimeout.Seconds(), time.Since(began).Seconds(), 4, "a request is under way for up to 3 s before, and a loaded machine is late")
	release()
	eventually(t, "analyses go on", func() bool { return !suspended() })
	w.step(0, "j", 1, 1)
	eventually(t, "the rest of the step", func() bool { return r.stepsOf("j")[1] == 2 })
}

func TestReceiver_BrokerFallsSilent_StopsInTime(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	w.step(0, "j", 0, 1)
	r := start(t, configFor(c), &analysis{})
	eventually(t, "step", func() bool { return r.stepsOf("j")[1] == 1 })
	silence(t, c)
	began := time.Now()
	r.stop()
	assert.Less(t, time.Since(began), deliver.ShutdownLimit)
}

// slow is an analysis that does not suspend.
type slow struct{ *analysis }

func (slow) Suspend(ctx context.Context) { <-ctx.Done() }

func TestReceiver_AnalysisIsSlow_StopsInTime(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	w.step(0, "j", 0, 1)
	a := &analysis{}
	r := startWith(t, configFor(c), a, slow{a})
	eventually(t, "step", func() bool { return r.stepsOf("j")[1] == 1 })
	began := time.Now()
	r.stop()
	assert.Less(t, time.Since(began), 2*deliver.ShutdownLimit, "half of the limit for analyses, half for brokers, and a loaded machine")
}

// A topic deletes records that are held. Generations that follow keep the marks, and the jobs.
func TestReceiver_HeldRecordsAreDeleted_MarksStay(t *testing.T) {
	t.Parallel()
	c := brokers(t, 2)
	w := newWriter(t, c)
	for s := range int64(20) {
		w.step(0, "j", 0, s)
	}
	cfg := configFor(c)
	cfg.Hold.Steps, cfg.Retry.Enabled = 15, false
	a := &analysis{}
	r := start(t, cfg, a)
	eventually(t, "the last 15 steps are held", func() bool { _, m := committed(t, w, 0); return heldFrom(m, 5) })
	at, _ := committed(t, w, 0)
	require.NoError(t, c.DeleteRecords(defaultTraceTopic, 0, at+5))
	for generation := range int64(3) {
		a.mu.Lock()
		refused := false
		a.refuse = func() error {
			if refused {
				return nil
			}
			refused = true
			return errors.New("no memory")
		}
		a.mu.Unlock()
		w.step(1, "other", 0, generation)
		eventually(t, "a generation later", func() bool { return r.stepsOf("other")[generation] == 1 })
		eventually(t, "the marks are there", func() bool { _, m := committed(t, w, 0); return heldFrom(m, 5) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Empty(t, r.forgotten, "no other collector is there")
}

// Held log records are deleted while no collector is there, and none comes since: generations that follow drop nothing.
func TestReceiver_LogRecordsAreDeletedMeanwhile_NothingIsForgotten(t *testing.T) {
	t.Parallel()
	c := brokers(t, 1)
	w := newWriter(t, c)
	for range 5 {
		w.write(defaultLogTopic, 0, oneLog(t))
	}
	w.step(0, "j", 0, 0)
	offsetOf := func() int64 {
		all, err := kadm.NewClient(w.cl).FetchOffsets(t.Context(), defaultGroup)
		require.NoError(t, err)
		o, ok := all.Lookup(defaultLogTopic, 0)
		if !ok {
			return -1
		}
		return o.At
	}
	cfg := configFor(c)
	cfg.Hold.Time, cfg.Hold.Idle = time.Hour, time.Hour
	first := start(t, cfg, &analysis{})
	eventually(t, "all is read", func() bool { return first.logRecords() == 5 && first.stepsOf("j")[0] == 1 })
	eventually(t, "committed", func() bool { return offsetOf() == 0 })
	first.stop()
	require.NoError(t, c.DeleteRecords(defaultLogTopic, 0, 5))

	cfg = configFor(c)
	cfg.Hold.Time, cfg.Hold.Idle, cfg.Retry.Enabled = time.Hour, time.Hour, false
	a := &analysis{}
	r := start(t, cfg, a)
	w.step(0, "j", 0, 1)
	eventually(t, "a step", func() bool { return r.stepsOf("j")[1] == 1 })
	eventually(t, "committed", func() bool { return offsetOf() == 5 })
	for generation := range int64(2) {
		a.mu.Lock()
		refused := false
		a.refuse = func() error {
			if refused {
				return nil
			}
			refused = true
			return errors.New("no memory")
		}
		a.mu.Unlock()
		w.step(0, "j", 0, 2+generation)
		eventually(t, "a generation later", func() bool { return r.stepsOf("j")[2+generation] == 1 })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Empty(t, r.forgotten, "no other collector is there")
	assert.Zero(t, r.counted("partitions_lost", ""))
}
