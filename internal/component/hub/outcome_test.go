// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
)

// partly refuses the records after the first of the first call, as an exporter does that knows what it sent.
type partly struct {
	consumer.Logs
	permanent bool
	calls     []string
}

func (p *partly) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	p.calls = append(p.calls, textOf(ld))
	if len(p.calls) > 1 {
		return nil
	}
	first := true
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			sl.LogRecords().RemoveIf(func(plog.LogRecord) bool { was := first; first = false; return was })
		}
	}
	err := consumererror.NewLogs(assert.AnError, ld)
	if p.permanent {
		return consumererror.NewPermanent(err)
	}
	return err
}

func TestFindings_PartIsRefused_OnlyThatIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		next := &partly{Logs: r.logs}
		r.logsToLogs(next)
		r.begin()
		r.mustSend("a1 b1 c1")
		synctest.Wait()
		r.mustSend("b2 d1")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"a1 b1 c1", "c1 b2 d1"}, next.calls, "the newest of each, and what came since")
		assert.Zero(t, r.counts.EventsLost.Load())
		r.stop()
	})
}

// What is refused in part for good is tried alone before it is lost.
func TestFindings_PartIsRefusedForGood_TriedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		next := &partly{Logs: r.logs, permanent: true}
		r.logsToLogs(next)
		r.begin()
		r.mustSend("a1 b1 c1")
		time.Sleep(time.Minute)
		r.mustSend("b2")
		r.stop()
		assert.Equal(t, []string{"a1 b1 c1", "b1", "c1", "b2"}, next.calls)
		assert.Zero(t, r.counts.EventsLost.Load())
	})
}

// A component between may change events. Which of them were taken is unknown then.
func TestFindings_PartOfChangedOnesIsRefused_AllAreSentAgain(t *testing.T) {
	for name, change := range map[string]func(plog.LogRecord){
		"no findings":     func(lr plog.LogRecord) { lr.SetEventName("") },
		"other revisions": func(lr plog.LogRecord) { lr.Attributes().PutInt("lockstep.finding.revision", 77) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.conclude = findings
				var refused atomic.Bool
				next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
					if refused.Swap(true) {
						return r.logs.ConsumeLogs(ctx, ld)
					}
					changed := plog.NewLogs()
					ld.CopyTo(changed)
					change(changed.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0))
					return consumererror.NewLogs(assert.AnError, changed)
				})
				require.NoError(t, err)
				r.logsToLogs(next)
				r.begin()
				r.mustSend("a1 b1")
				time.Sleep(time.Minute)
				assert.Equal(t, []string{"a1 b1"}, delivered(r.logs))
				r.stop()
			})
		})
	}
}

// A finding that a component between has changed is not taken for a record beside it.
func TestFindings_ChangedOneIsRefusedBesideARecord_IsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = func(string) Output {
			out := findings("a1")
			out.Records = []Record{{Key: "r", Write: func(lr plog.LogRecord) { lr.Body().SetStr("record") }}}
			return out
		}
		var refused atomic.Bool
		next, err := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
			if refused.Swap(true) {
				return r.logs.ConsumeLogs(ctx, ld)
			}
			changed := plog.NewLogs()
			changed.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("finding")
			return consumererror.NewLogs(assert.AnError, changed)
		})
		require.NoError(t, err)
		r.logsToLogs(next)
		r.begin()
		r.mustSend("x")
		time.Sleep(time.Minute)
		assert.ElementsMatch(t, []string{"a1", "record"}, words(delivered(r.logs)))
		r.stop()
	})
}
