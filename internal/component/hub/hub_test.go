// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestInstances_OneConfiguration_ShareEngineAndOutputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		first, second, spans := r.logsToLogs(r.logs), r.logsToTraces(r.traces), r.tracesToLogs(consumertest.NewNop())
		r.begin()
		assert.Equal(t, 1, r.made)
		assert.Same(t, first.output, spans.output)
		assert.NotSame(t, first.output, second.output)
		for _, i := range []*instance{first, second} { // both get what their pipeline has
			require.NoError(t, i.ConsumeLogs(t.Context(), batch("a1")))
		}
		synctest.Wait()
		require.NoError(t, spans.ConsumeTraces(t.Context(), spanBatch("b1")))
		synctest.Wait()
		assert.Equal(t, []string{"a1", "b1"}, r.noted())
		assert.Equal(t, []string{"a1", "b1"}, delivered(r.logs))
		assert.False(t, first.Capabilities().MutatesData)
		r.stop()
	})
}

func TestInstances_OtherConfiguration_HasItsOwnEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newRig(t), newRig(t)
		b.connectors = a.connectors
		a.start()
		b.start()
		a.mustSend("1")
		b.mustSend("2")
		assert.Equal(t, []string{"1"}, a.noted())
		assert.Equal(t, []string{"2"}, b.noted())
		a.stop()
		b.stop()
	})
}

// The next instance of a configuration gets a new engine once all instances have left.
func TestInstances_LastLeaves_EngineGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Stop = func() { r.note("stop") }
		r.start()
		for range 3 { // only the first counts
			require.NoError(t, r.instances[0].Shutdown(t.Context()))
		}
		assert.Empty(t, r.noted())
		r.logsToLogs(r.logs)
		assert.Equal(t, 1, r.made)
		r.stop()
		assert.Equal(t, []string{"stop"}, r.noted())
		r.instances = nil
		r.logsToLogs(r.logs)
		assert.Equal(t, 2, r.made)
		r.stop()
	})
}

func TestConnectors_EngineFails_ReturnIt(t *testing.T) {
	c := NewConnectors(func(*rig, connector.Settings) (*Engine, error) { return nil, assert.AnError })
	r := newRig(t)
	_, err := c.LogsToLogs(t.Context(), r.set, r, r.logs)
	require.ErrorIs(t, err, assert.AnError)
	_, err = c.TracesToTraces(t.Context(), r.set, r, r.traces)
	require.ErrorIs(t, err, assert.AnError)
	_, err = c.TracesToMetrics(t.Context(), r.set, r, r.metrics)
	require.ErrorIs(t, err, assert.AnError)
}

func TestShutdown_NotStarted_Works(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Stop = func() { r.note("stop") }
		r.logsToLogs(r.logs)
		r.logsToMetrics(r.metrics)
		r.stop()
		r.stop()
		assert.Equal(t, []string{"stop"}, r.noted())
	})
}

// Each instance reports why the engine does not run, and all can be stopped.
func TestStart_Fails_EachInstanceReportsIt(t *testing.T) {
	missing := component.MustNewID("missing")
	for name, change := range map[string]func(*rig){
		"engine":  func(r *rig) { r.Start = func(context.Context, component.Host, Outputs) error { return assert.AnError } },
		"storage": func(r *rig) { r.Storage = &missing },
		"read": func(r *rig) {
			r.Storage, r.States = &id, map[string]State{"a": &counter{}}
			r.host = host{componenttest.NewNopHost(), map[component.ID]component.Component{id: unreadable{&slowStorage{}}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.Tick = func(time.Time) Output { r.note("tick"); return Output{} }
				r.Stop = func() { r.note("stop") }
				change(r)
				r.logsToLogs(r.logs)
				r.logsToMetrics(r.metrics)
				var errs []string
				for _, i := range r.instances {
					err := i.Start(t.Context(), r.host)
					require.Error(t, err)
					errs = append(errs, err.Error())
				}
				assert.Equal(t, errs[0], errs[1])
				time.Sleep(2 * tickEvery)
				r.stop()
				assert.Equal(t, []string{"stop"}, r.noted(), "no interval runs")
			})
		})
	}
}

// unreadable is a storage that opens, and fails to read.
type unreadable struct{ *slowStorage }

func (u unreadable) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return u, nil
}

func (unreadable) Get(context.Context, string) ([]byte, error) { return nil, assert.AnError }

func TestStart_TwoOutputs_EngineKnowsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var got Outputs
		r.Start = func(_ context.Context, _ component.Host, o Outputs) error {
			got = o
			r.note("start")
			return nil
		}
		r.logsToLogs(r.logs)
		r.logsToTraces(r.traces)
		r.begin()
		assert.Equal(t, []string{"start"}, r.noted(), "once")
		assert.Equal(t, Outputs{Logs: true, Traces: true}, got)
		r.stop()
	})
}

// The engine is called with its lock, by one at a time, and its counters are published after each use.
func TestUse_EachCall_HoldsTheLockAndPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		lock := &countingLock{}
		r.Lock, r.conclude = lock, findings
		held := func(name string) {
			r.note("%s", name)
			assert.True(t, lock.held, name)
		}
		r.Seen = func() { held("seen") }
		r.Tick = func(time.Time) Output { held("tick"); return Output{} }
		r.Flush = func(time.Time) Output { held("flush"); return Output{} }
		r.RepeatInterval = tickEvery
		r.Open = func(time.Time) []model.Finding { held("open"); return nil }
		r.Metrics = func(now time.Time) pmetric.Metrics { held("metrics"); return r.toy.metrics(now) }
		r.logsToLogs(r.logs)
		r.logsToMetrics(r.metrics)
		assert.Equal(t, []string{"seen"}, r.noted(), "as soon as telemetry may read it")
		r.begin()
		assert.Equal(t, []string{"seen"}, r.noted(), "with what was restored")
		r.mustSend("a1")
		assert.Equal(t, []string{"a1", "seen"}, r.noted())
		time.Sleep(tickEvery)
		synctest.Wait()
		assert.Equal(t, []string{"tick", "seen", "open", "seen", "metrics", "seen"}, r.noted())
		r.stop()
		assert.Equal(t, []string{"flush", "seen", "metrics", "seen"}, r.noted(), "flushed once, since nothing came in between")
		assert.False(t, lock.held)
	})
}

type countingLock struct{ held bool }

func (l *countingLock) Lock() {
	if l.held {
		panic("two use the engine")
	}
	l.held = true
}

func (l *countingLock) Unlock() { l.held = false }

// Open findings that have not changed are sent each RepeatInterval, with those that have.
func TestTick_RepeatIsDue_OpenFindingsAreSentOnce(t *testing.T) {
	for every, want := range map[time.Duration][]string{
		2 * tickEvery: {"b3 a1 c1", "b3", "b3 a1 c1"},
		0:             {"b3", "b3", "b3"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.Tick = func(time.Time) Output { return findings("b3") }
			r.Open = func(time.Time) []model.Finding { return findingsIn("a1 b2 c1") }
			r.RepeatInterval = every
			r.logsToLogs(r.logs)
			r.begin()
			time.Sleep(3 * tickEvery)
			synctest.Wait()
			assert.Equal(t, want, delivered(r.logs))
			r.stop()
		})
	}
}

func TestConsume_NothingRead_EngineIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.Seen = func() { r.note("seen") }
		r.start()
		r.noted()
		r.Logs = func(plog.Logs) Input { return Input{} }
		r.mustSend("x")
		assert.Empty(t, r.noted())
		r.stop()
	})
}

// Time runs forward for the engine: a tick that waits for its turn comes after what had it.
func TestTick_TurnComesLate_TimeRunsForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var times []time.Time
		use := func(takes time.Duration) Input {
			return Input{Apply: func(now time.Time) Output {
				times = append(times, now)
				time.Sleep(takes)
				return Output{}
			}}
		}
		r.Logs = func(ld plog.Logs) Input {
			takes, _ := time.ParseDuration(ld.ResourceLogs().At(0).SchemaUrl())
			return use(takes)
		}
		r.Tick = func(now time.Time) Output { times = append(times, now); return Output{} }
		r.logsToLogs(r.logs)
		r.begin()
		time.Sleep(tickEvery - time.Second)
		go func() { assert.NoError(t, r.send(context.Background(), "3s")) }()
		synctest.Wait()
		time.Sleep(2 * time.Second) // the tick waits
		r.mustSend("1s")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.GreaterOrEqual(t, len(times), 3)
		assert.True(t, slices.IsSortedFunc(times, time.Time.Compare), "%v", times)
		r.stop()
	})
}

func TestConnectors_SentWithoutWait_Refused(t *testing.T) {
	r := newRig(t)
	r.Sent = func(context.Context, *States, *Output) {}
	_, err := r.connectors.LogsToLogs(t.Context(), r.set, r, r.logs)
	require.ErrorContains(t, err, "got an engine with Sent and without Wait")
	r.Wait = true
	r.logsToLogs(r.logs)
	r.stop()
}
