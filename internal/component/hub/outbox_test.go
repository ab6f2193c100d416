// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap/zapcore"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// againWithin is the longest pause between two attempts.
const againWithin = 5 * time.Second

// findingsRig is a rig with one output, for log events.
func findingsRig(t *testing.T, answer delivertest.Answer) *rig {
	t.Helper()
	r := newRig(t)
	r.conclude = findings
	r.logs = delivertest.NewNext(answer)
	r.logsToLogs(r.logs)
	r.begin()
	return r
}

// words returns what calls had, without how it was divided.
func words(calls []string) []string { return strings.Fields(strings.Join(calls, " ")) }

// refusing refuses while on.
type refusing struct{ on atomic.Bool }

func (f *refusing) answer(context.Context, int64) error {
	if f.on.Load() {
		return assert.AnError
	}
	return nil
}

func TestFindings_NextTakes_EachChangeIsSentOnceInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, delivertest.Takes)
		r.sendEach("a1 b1", "a2", "a3 b2 a4", "-1 -2")
		assert.Equal(t, []string{"a1 b1", "a2", "a3 b2 a4", "-1 -2"}, delivered(r.logs))
		time.Sleep(time.Minute)
		assert.Len(t, delivered(r.logs), 4, "once")
		assert.Zero(t, r.counts.EventsRefused.Load())
		assert.Zero(t, r.counts.EventsLost.Load())
		r.stop()
	})
}

// A next component that takes its time gets each change, too, in fewer calls.
func TestFindings_NextIsSlow_EachChangeIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, delivertest.TakesAfter(time.Minute))
		r.sendEach("a1", "a2", "b1 a3", "-1", "a4")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"a1", "a2 b1 a3 -1 a4"}, delivered(r.logs))
		r.stop()
	})
}

// The newest revision of each finding is kept, the closed ones too, and sent again.
func TestFindings_NextRefuses_NewestOfEachIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := &refusing{}
		refuse.on.Store(true)
		r := findingsRig(t, refuse.answer)
		r.mustSend("a1 b1 -1")
		time.Sleep(time.Minute)
		r.mustSend("a2", "c1", "-2", "a3", "a4 c2")
		time.Sleep(time.Minute)
		assert.Empty(t, delivered(r.logs))
		assert.Positive(t, r.counts.EventsRefused.Load())
		refuse.on.Store(false)
		time.Sleep(againWithin)
		synctest.Wait()
		sent := delivered(r.logs)
		assert.ElementsMatch(t, []string{"b1", "-1", "-2", "a4", "c2"}, words(sent))
		r.sendEach("a5", "a6")
		assert.Equal(t, append(sent, "a5", "a6"), delivered(r.logs), "once")
		assert.Zero(t, r.counts.EventsLost.Load())
		r.stop()
	})
}

// A revision that comes while the one before is refused, is sent after it or in its place.
func TestFindings_RevisionDuringCall_IsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, func(_ context.Context, call int64) error {
			time.Sleep(time.Second)
			if call == 1 {
				return assert.AnError
			}
			return nil
		})
		r.sendEach("a1")
		r.mustSend("a2", "b1")
		time.Sleep(time.Minute)
		r.mustSend("a3")
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a1 a2 b1", "a3"}, delivered(r.logs))
		assert.Equal(t, int64(1), r.counts.EventsRefused.Load())
		r.stop()
	})
}

// A revision that came during a call does not replace one that came after the call was refused.
func TestFindings_RevisionsBeforeAndAfterRefusal_NewestStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, func(_ context.Context, call int64) error {
			time.Sleep(time.Second)
			if call <= 2 {
				return assert.AnError
			}
			return nil
		})
		r.sendEach("a1", "a2")
		time.Sleep(3 * time.Second / 2) // it rests
		r.sendEach("a3")
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"a3"}, delivered(r.logs))
		assert.Zero(t, r.counts.EventsLost.Load())
		r.stop()
	})
}

func TestFindings_RefusedForGood_AreLostOnce(t *testing.T) {
	for name, refuse := range map[string]delivertest.Answer{
		"permanent": delivertest.Refuses(math.MaxInt64, consumererror.NewPermanent(assert.AnError)),
		"panic":     delivertest.Panics,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var takes atomic.Bool
				r := findingsRig(t, func(ctx context.Context, call int64) error {
					if takes.Load() {
						return nil
					}
					return refuse(ctx, call)
				})
				r.mustSend("a1 b1")
				synctest.Wait()
				assert.Equal(t, int64(2), r.counts.EventsLost.Load())
				assert.Equal(t, int64(2+1+1), r.counts.EventsRefused.Load(), "together, and alone")
				logged := r.log.FilterMessage("The next component refused events for good").All()
				require.Len(t, logged, 1, "one line a minute")
				assert.Equal(t, zapcore.ErrorLevel, logged[0].Level)
				takes.Store(true)
				r.mustSend("a2")
				time.Sleep(time.Minute)
				synctest.Wait()
				assert.Equal(t, []string{"a2"}, delivered(r.logs))
				logged = r.log.FilterMessage("The next component refused events for good").All()
				require.Len(t, logged, 2, "the rest a minute later")
				assert.EqualValues(t, 1, logged[1].ContextMap()["events"])
				r.stop()
				assert.Equal(t, int64(2), r.counts.EventsLost.Load())
			})
		})
	}
}

// A call that is too large for the next component, or that has one event that it cannot read, costs no other
// event.
func TestFindings_CallIsRefusedForGood_OthersAreTaken(t *testing.T) {
	for name, refuses := range map[string]func(ld plog.Logs) bool{
		"too large": func(ld plog.Logs) bool { return ld.LogRecordCount() > 100 },
		"one event": func(ld plog.Logs) bool { return strings.Contains(textOf(ld), "finding 700 ") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				const sent = 1500
				r.conclude = func(string) (out Output) {
					for i := range sent {
						out.Findings = append(out.Findings, model.Finding{ID: "finding " + strconv.Itoa(i) + " ", Revision: 1, Status: model.StatusOpen})
					}
					return out
				}
				var got int
				next, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
					if refuses(ld) {
						return consumererror.NewPermanent(assert.AnError)
					}
					got += ld.LogRecordCount()
					return nil
				})
				require.NoError(t, err)
				r.logsToLogs(next)
				r.begin()
				r.mustSend("all")
				time.Sleep(time.Minute)
				synctest.Wait()
				lost := int(r.counts.EventsLost.Load())
				assert.Equal(t, sent, got+lost)
				assert.Equal(t, name == "one event", lost == 1)
				r.stop()
			})
		})
	}
}

// An event that is refused again and again keeps no other one.
func TestFindings_OneIsRefusedAlways_OthersAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		var got []string
		next, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
			refused := plog.NewLogs()
			ld.CopyTo(refused)
			keep := func(of plog.Logs, bad bool) {
				for _, rl := range of.ResourceLogs().All() {
					for _, sl := range rl.ScopeLogs().All() {
						sl.LogRecords().RemoveIf(func(lr plog.LogRecord) bool {
							f, _ := otelmap.LogToFinding(lr, nil)
							return (f.ID == "a") != bad
						})
					}
				}
			}
			keep(ld, false)
			keep(refused, true)
			got = append(got, textOf(ld))
			if refused.LogRecordCount() == 0 {
				return nil
			}
			return consumererror.NewLogs(assert.AnError, refused)
		})
		require.NoError(t, err)
		r.logsToLogs(next)
		r.begin()
		r.mustSend("a1 b1")
		synctest.Wait()
		r.mustSend("c1 b2")
		time.Sleep(againWithin)
		synctest.Wait()
		assert.Equal(t, []string{"b1", "c1 b2"}, got[:2])
		for _, text := range got[2:] {
			assert.Empty(t, text, "what was taken is not sent again")
		}
		require.Error(t, r.instances[0].Shutdown(t.Context()))
		assert.Equal(t, int64(1), r.counts.EventsLost.Load())
	})
}

// One that is refused and changes all the time does not stay before the others.
func TestFindings_RefusedOneChanges_OthersAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		next := newPicky(t, 2*time.Second, assert.AnError, "x")
		r.logsToLogs(next)
		r.begin()
		r.mustSend("x1 a1 b1 c1")
		for i := range 600 {
			time.Sleep(time.Second)
			r.mustSend(fmt.Sprint("x", i+2))
		}
		assert.ElementsMatch(t, []string{"a1", "b1", "c1"}, words(next.got))
		require.ErrorContains(t, r.instances[0].Shutdown(t.Context()), "are lost")
	})
}

// A revision that was refused while a newer one waited is not sent behind it.
func TestFindings_OlderOneIsRefused_NotSentAfterTheNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, delivertest.Refuses(1, assert.AnError))
		r.instances[0].handle.Value.logs.box.pieces.size = 1
		r.mustSend("b1", "b2")
		synctest.Wait()
		r.instances[0].handle.Value.logs.box.pieces.size = 1
		r.mustSend("c1")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"b2", "c1"}, words(delivered(r.logs)))
		r.stop()
	})
}

// Of records about one thing the last is sent again, and of spans the same.
func TestRecordsAndSpans_NextRefuses_NewestOfEachIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := &refusing{}
		refuse.on.Store(true)
		r := newRig(t)
		r.logs, r.traces = delivertest.NewNext(refuse.answer), delivertest.NewNext(refuse.answer)
		r.conclude = func(name string) Output {
			return Output{
				Findings: findingsIn("a1"), FindingSpans: findingsIn("a1"),
				Records: []Record{{Key: "a", Write: func(lr plog.LogRecord) { lr.Body().SetStr("record") }}, {Key: name[:1], Write: func(lr plog.LogRecord) { lr.Body().SetStr(name) }}},
				Spans: []Spans{{Key: name[:1], Write: func(td ptrace.Traces) {
					td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(name)
				}}},
			}
		}
		r.logsToLogs(r.logs)
		r.logsToTraces(r.traces)
		r.begin()
		r.mustSend("x1", "y1")
		time.Sleep(time.Minute)
		r.mustSend("x2")
		refuse.on.Store(false)
		time.Sleep(againWithin)
		synctest.Wait()
		sent := delivered(r.logs)
		assert.ElementsMatch(t, []string{"a1", "y1", "record", "x2"}, words(sent), "a record is no finding of its key")
		assert.ElementsMatch(t, []string{"finding", "toy", "y1", "x2"}, words(spansOf(r.traces)))
		r.mustSend("y2")
		synctest.Wait()
		assert.Equal(t, append(words(sent), "a1", "record", "y2"), words(delivered(r.logs)))
		assert.Zero(t, r.counts.EventsLost.Load()+r.counts.SpansLost.Load())
		r.stop()
	})
}

// No pipeline takes the signal: nothing waits, and nothing counts as lost.
func TestFindings_NoPipeline_AreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = func(string) Output { return Output{Findings: findingsIn("a1"), FindingSpans: findingsIn("a1")} }
		r.logsToMetrics(r.metrics)
		r.begin()
		r.mustSend("x")
		r.stop()
		assert.Zero(t, r.counts.EventsLost.Load()+r.counts.SpansLost.Load())
	})
}

// A finding that was refused and has changed since keeps its early place. The revisions of others that came before it,
// and were not in its call, are sent each.
func TestFindings_KeptOneChanges_OthersGetEachRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := &refusing{}
		refuse.on.Store(true)
		r := findingsRig(t, func(ctx context.Context, call int64) error {
			if err := refuse.answer(ctx, call); err != nil {
				return err
			}
			return delivertest.TakesAfter(100*time.Millisecond)(ctx, call)
		})
		r.sendEach("a1")
		r.instances[0].handle.Value.logs.box.pieces.size = 1
		refuse.on.Store(false)
		r.mustSend("b1", "b2", "b3", "a2")
		for len(delivered(r.logs)) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		r.instances[0].handle.Value.logs.box.wait(t.Context(), 4)
		assert.Len(t, words(delivered(r.logs)), 4, "a2 is no sign of those before it")
		assert.ElementsMatch(t, []string{"a2", "b1", "b2", "b3"}, words(delivered(r.logs)))
		r.stop()
	})
}

func TestFindings_KeptOneIsRefusedAgain_OthersGetEachRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, delivertest.Refuses(2, assert.AnError))
		r.sendEach("a1")
		r.instances[0].handle.Value.logs.box.pieces.size = 1
		r.mustSend("b1", "b2", "b3", "a2")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"b1", "b2", "b3", "a2"}, words(delivered(r.logs)))
		r.stop()
	})
}
