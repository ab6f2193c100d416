// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"maps"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// noting is a storage that notes with the engine what is saved.
type noting struct {
	memory
	of *toy
}

func (s *noting) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return s, nil
}

func (s *noting) Set(_ context.Context, key string, value []byte) error {
	s.of.note("save %s %s", key, value)
	s.data[key] = value
	return s.fail
}

func (s *noting) Close(context.Context) error {
	s.of.note("close")
	return nil
}

// counted is a state that counts the batches of a toy.
type counted struct {
	counter
	restored string
}

func (c *counted) Restore(data []byte, _ time.Time) error {
	c.restored = string(data)
	return nil
}

// keepRig is a rig with a storage and an output for log events, which notes each call of the next component. Each batch changes
// the state, and concludes with findings.
func keepRig(t *testing.T) (*rig, *noting, *counted) {
	t.Helper()
	r, state := newRig(t), &counted{}
	kept := &noting{memory{data: map[string][]byte{}}, r.toy}
	r.host = host{componenttest.NewNopHost(), map[component.ID]component.Component{id: kept}}
	r.Storage, r.States = &id, map[string]State{"state": state}
	r.conclude = func(name string) Output {
		state.n++
		return findings(name)
	}
	r.logs = delivertest.NewNext(func(context.Context, int64) error { r.note("sent"); return nil })
	r.logsToLogs(r.logs)
	return r, kept, state
}

// A restart knows each finding that was sent.
func TestStates_Findings_KeptBeforeTheyAreSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, _ := keepRig(t)
		r.Flush = func(time.Time) Output { r.note("flush"); return findings("a9") }
		r.Stop = func() { r.note("stop") }
		r.begin()
		r.sendEach("a1", "")
		assert.Equal(t, []string{"a1", "save state 1", "sent", ""}, r.noted(), "a batch without findings waits for the next flush")
		r.stop()
		assert.Equal(t, []string{"flush", "save state 2", "sent", "close", "stop"}, r.noted())
	})
}

func TestStates_FlushIsDue_AreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, _ := keepRig(t)
		r.FlushInterval = 2 * tickEvery
		r.begin()
		time.Sleep(tickEvery + tickEvery/2)
		r.sendEach("")
		r.noted()
		time.Sleep(tickEvery)
		synctest.Wait()
		assert.Empty(t, r.noted())
		time.Sleep(tickEvery)
		synctest.Wait()
		assert.Equal(t, []string{"save state 1"}, r.noted())
		r.stop()
	})
}

func TestStates_Restart_AreRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, kept, state := keepRig(t)
		kept.data["state"] = []byte("7")
		r.Start = func(context.Context, component.Host, Outputs) error { r.note("start"); return nil }
		r.Seen = func() { r.note("seen %s", state.restored) }
		r.begin()
		assert.Equal(t, []string{"start", "seen 7"}, r.noted())
		r.stop()
	})
}

// An engine that keeps its states itself does so before and after an output, and the others are kept behind the flush.
func TestStates_EngineKeepsThem_BeforeAndAfterTheOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, _ := keepRig(t)
		r.Wait, r.FlushInterval = true, tickEvery
		r.Save = func(ctx context.Context, states *States, out *Output) {
			r.note("before %s", out.Findings[0].ID)
			if out.Findings[0].ID == "a" {
				states.SaveOne(ctx, "state")
				states.SaveOne(ctx, "other")
			}
		}
		r.Sent = func(_ context.Context, _ *States, out *Output) { r.note("after %d", len(out.Findings)) }
		r.Tick = func(time.Time) Output { r.note("tick"); return findings("b1") }
		r.begin()
		r.sendEach("a1")
		assert.Equal(t, []string{"a1", "before a", "save state 1", "sent", "after 1"}, r.noted())
		r.sendEach("")
		assert.Equal(t, []string{"", "after 0"}, r.noted())
		time.Sleep(tickEvery)
		synctest.Wait()
		assert.Equal(t, []string{"tick", "before b", "sent", "after 1", "save state 2"}, r.noted())
		r.stop()
	})
}

func TestStates_StorageFails_CountedAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry := componenttest.NewTelemetry()
		r, kept, _ := keepRig(t)
		failures, err := telemetry.NewTelemetrySettings().MeterProvider.Meter("toy").Int64Counter("failures")
		require.NoError(t, err)
		r.StorageFailures = failures
		r.begin()
		kept.fail = assert.AnError
		r.sendEach("a1", "a2")
		assert.Equal(t, []string{"a1", "a2"}, delivered(r.logs), "they are sent all the same")
		got, err := telemetry.GetMetric("failures")
		require.NoError(t, err)
		assert.Equal(t, int64(2), got.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
		assert.Equal(t, 2, r.log.FilterMessage("Storage of findings fails").Len())
		kept.fail = nil
		r.stop()
		require.NoError(t, telemetry.Shutdown(context.Background()))
	})
}

// An engine without a counter of failures has them logged.
func TestStates_StorageFailsWithoutCounter_Logged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, kept, _ := keepRig(t)
		r.begin()
		kept.fail = assert.AnError
		r.sendEach("a1")
		assert.Equal(t, 1, r.log.FilterMessage("Storage of findings fails").Len())
		kept.fail = nil
		r.stop()
	})
}

// behindRig keeps its state behind the delivery: each batch and each call of end counts.
type behindRig struct {
	*rig
	kept *memory
	end  func() Output
}

func newBehindRig(t *testing.T) *behindRig {
	t.Helper()
	r, state := &behindRig{rig: newRig(t), kept: &memory{data: map[string][]byte{}}}, &counter{}
	r.Wait, r.Storage, r.States = true, &id, map[string]State{"counter": state}
	r.conclude = func(name string) Output { state.n++; return findings(name) }
	r.end = func() Output { state.n++; return findings("z1") }
	r.Save = func(context.Context, *States, *Output) {}
	r.Sent = func(ctx context.Context, states *States, _ *Output) { states.SaveSoon(ctx) }
	r.host = host{componenttest.NewNopHost(), map[component.ID]component.Component{id: r.kept}}
	return r
}

// Where states are kept behind the delivery, none is kept while a finding is refused, also not at the end: after a
// restart the source repeats the finding.
func TestStates_RefusedUntilTheEnd_KeptAsBefore(t *testing.T) {
	for name, c := range map[string]struct {
		answer delivertest.Answer
		kept   bool
	}{
		"taken":            {delivertest.Takes, true},
		"refused":          {delivertest.Refuses(math.MaxInt64, assert.AnError), false},
		"refused for good": {delivertest.Refuses(math.MaxInt64, consumererror.NewPermanent(assert.AnError)), true},
	} {
		for _, signal := range []string{"logs", "traces"} {
			t.Run(name+", "+signal, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newBehindRig(t)
					if signal == "logs" {
						r.logsToLogs(delivertest.NewNext(c.answer))
					} else {
						all := r.conclude
						r.conclude = func(name string) Output { return Output{FindingSpans: all(name).Findings} }
						r.logsToTraces(delivertest.NewNext(c.answer))
					}
					r.begin()
					r.mustSend("a1")
					time.Sleep(21 * tickEvery)
					assert.Equal(t, c.kept, len(r.kept.data) > 0)
					assert.Equal(t, c.kept, r.instances[0].Shutdown(t.Context()) == nil)
					assert.Equal(t, c.kept, len(r.kept.data) > 0)
				})
			})
		}
	}
}

// A finding that is refused for good at the end is lost after a restart, too: its source would repeat it in vain.
func TestStates_RefusedForGoodAtTheEnd_Kept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBehindRig(t)
		var ends atomic.Bool
		r.Flush = func(time.Time) Output { ends.Store(true); return Output{} }
		r.logsToLogs(delivertest.NewNext(func(context.Context, int64) error {
			if ends.Load() {
				return consumererror.NewPermanent(assert.AnError)
			}
			return assert.AnError
		}))
		r.begin()
		r.mustSend("a1")
		require.Error(t, r.instances[0].Shutdown(t.Context()))
		assert.NotEmpty(t, r.kept.data)
	})
}

// What the end has no time for is not kept as delivered.
func TestStates_TimeOfTheEndIsOver_KeptAsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBehindRig(t)
		r.Flush = func(time.Time) Output { return r.end() }
		r.logsToLogs(delivertest.NewNext(delivertest.TakesAfter(time.Hour)))
		r.begin()
		require.Error(t, r.instances[0].Shutdown(t.Context()))
		assert.Equal(t, int64(1), r.counts.EventsLost.Load())
		assert.Empty(t, r.kept.data)
		time.Sleep(2 * time.Hour)
	})
}

// What is concluded after the output has ended is not kept as delivered: the engine was left behind, or another output
// takes its time.
func TestStates_ConcludedAfterTheEnd_KeptAsBefore(t *testing.T) {
	for name, busy := range map[string]bool{"left behind": true, "other output": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newBehindRig(t)
				r.Metrics = r.toy.metrics
				r.Tick = func(time.Time) Output {
					if busy {
						time.Sleep(11 * time.Second)
					}
					return r.end()
				}
				r.logsToLogs(r.logs)
				r.logsToMetrics(delivertest.NewNext(delivertest.TakesAfter(time.Hour)))
				r.begin()
				if time.Sleep(tickEvery + time.Second); !busy {
					time.Sleep(tickEvery - 3*time.Second)
				}
				sent, kept := len(delivered(r.logs)), maps.Clone(r.kept.data)
				for _, i := range r.instances {
					_ = i.Shutdown(t.Context())
				}
				time.Sleep(2 * time.Hour)
				assert.Len(t, delivered(r.logs), sent)
				assert.Equal(t, int64(1), r.counts.EventsLost.Load())
				assert.Equal(t, kept, r.kept.data)
			})
		})
	}
}
