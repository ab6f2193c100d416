// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// What is kept of a batch keeps nothing else of it alive.
func TestFindings_NextRefuses_KeepsNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := &refusing{}
		refuse.on.Store(true)
		r := findingsRig(t, refuse.answer)
		all := []model.Finding{finding("a", 1), finding("b", 1)}
		r.conclude = func(string) Output { return Output{Findings: all} }
		r.sendEach("x")
		kept := r.instances[0].output.box.batch()
		require.Len(t, kept, 2)
		for _, e := range kept {
			assert.NotSame(t, &all[0], e.finding)
			assert.NotSame(t, &all[1], e.finding)
		}
		refuse.on.Store(false)
		r.stop()
		assert.Equal(t, []string{"a1 b1"}, delivered(r.logs))
	})
}

func numbered(n int, revision int64) []model.Finding {
	all := make([]model.Finding, n)
	for i := range all {
		all[i] = finding(strconv.Itoa(i), revision)
	}
	return all
}

// Findings that find no room are lost, and counted. New revisions of those that wait find room.
func TestFindings_TooMany_RestIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		r := newRig(t)
		r.logs = delivertest.NewNext(func(context.Context, int64) error { <-hold; return assert.AnError })
		r.logsToLogs(r.logs)
		r.begin()
		put := func(findings []model.Finding) {
			r.conclude = func(string) Output { return Output{Findings: findings} }
			r.sendEach("x")
		}
		one := finding("0", 1)
		room := maxEntryBytes / entryBytes(place{key: "finding/12345"}, entry{bytes: one.Bytes() + 5})
		require.Less(t, room, maxEntries)
		put(numbered(room, 1))
		put(numbered(room, 2))
		require.Zero(t, r.counts.EventsLost.Load(), "a new revision takes the place of the one before")
		const more = 10_000
		put(numbered(room+more, 3)[room:])
		lost := int(r.counts.EventsLost.Load())
		assert.Positive(t, lost)
		box := r.instances[0].output.box
		assert.Equal(t, room+more, lost+box.pending.Len())
		assert.LessOrEqual(t, box.pending.Bytes(), maxEntryBytes)
		close(hold)
		_ = r.instances[0].Shutdown(t.Context())
	})
}

// record concludes with a record about a thing, whose size in MiB and number a name has: "a 20 1".
func record(key string, mib int, text string) Output {
	return Output{Records: []Record{{Key: key, Bytes: mib << 20, Write: func(lr plog.LogRecord) { lr.Body().SetStr(text) }}}}
}

func TestRecords_TooManyBytes_RevisionsAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, delivertest.TakesAfter(time.Minute))
		outs := map[string]Output{
			"x1": record("x", 20, "x1"), "x2": record("x", 20, "x2"), "x3": record("x", 20, "x3"), "y1": record("y", 20, "y1"),
			"z1": record("z", 30, "z1"), "x4": record("x", 40, "x4"),
		}
		r.conclude = func(name string) Output { return outs[name] }
		r.sendEach("x1", "x2", "x3")
		r.sendEach("y1")
		assert.Zero(t, r.counts.EventsLost.Load(), "x3 is in place of x1 and x2")
		r.sendEach("z1")
		assert.Equal(t, int64(1), r.counts.EventsLost.Load(), "there is no room for it")
		r.sendEach("x4")
		assert.Equal(t, int64(1), r.counts.EventsLost.Load(), "in place of x3")
		time.Sleep(10 * time.Minute)
		assert.Equal(t, []string{"x1", "y1 x4"}, delivered(r.logs))
		r.stop()
		assert.Equal(t, int64(1), r.counts.EventsLost.Load())
	})
}

// What finds no room does not take the revision before along.
func TestRecords_RevisionIsTooLarge_OneBeforeStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := &refusing{}
		refuse.on.Store(true)
		r := findingsRig(t, refuse.answer)
		r.conclude = func(name string) Output { return record("x", map[string]int{"x1": 1, "x2": 65}[name], name) }
		r.sendEach("x1", "x2")
		assert.Equal(t, int64(1), r.counts.EventsLost.Load())
		refuse.on.Store(false)
		time.Sleep(againWithin)
		synctest.Wait()
		assert.Equal(t, []string{"x1"}, delivered(r.logs))
		r.stop()
		assert.Equal(t, int64(1), r.counts.EventsLost.Load())
	})
}

// Entries of no bytes are bounded in number and in what they take in the outbox.
func TestRecords_NoBytes_AreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, delivertest.TakesAfter(time.Hour))
		r.conclude = func(string) Output {
			all := make([]Record, maxEntries+10)
			for i := range all {
				all[i] = Record{Key: strconv.Itoa(i), Write: func(plog.LogRecord) {}}
			}
			return Output{Records: all}
		}
		r.sendEach("x")
		box := r.instances[0].output.box
		assert.LessOrEqual(t, box.pending.Bytes(), maxEntryBytes)
		assert.Equal(t, int64(10), r.counts.EventsLost.Load())
		_ = r.instances[0].Shutdown(t.Context())
		assert.Equal(t, int64(maxEntries+10), r.counts.EventsLost.Load())
	})
}

// The newest of those that are under way, and of those that came since, stays.
func TestRecords_FullOfOneUnderWay_RevisionTakesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, delivertest.TakesAfter(time.Minute))
		r.conclude = func(name string) Output { return record("x", 40, name) }
		r.sendEach("x1", "x2")
		assert.Zero(t, r.counts.EventsLost.Load())
		time.Sleep(3 * time.Minute)
		assert.Equal(t, []string{"x1", "x2"}, delivered(r.logs))
		r.stop()
	})
}

// What was delivered leaves nothing behind.
func TestFindings_Delivered_NothingIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := findingsRig(t, delivertest.Takes)
		r.sendEach("a1", "a2 b1", "-1")
		box := r.instances[0].output.box
		assert.Zero(t, box.pending.Len())
		assert.Zero(t, box.pending.Bytes())
		assert.Nil(t, box.fresh)
		assert.Nil(t, box.order)
		r.stop()
	})
}

// One event that is refused on and on keeps no other one, though the error does not name it.
func TestFindings_OneIsRefusedWithItsCall_OthersAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.conclude = findings
		next := newPicky(t, 0, assert.AnError, "c1")
		r.logsToLogs(next)
		r.begin()
		r.mustSend("a1 b1 c1 d1 e1 f1 g1 h1")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a1", "b1", "d1", "e1", "f1", "g1", "h1"}, words(next.got))
		require.ErrorContains(t, r.instances[0].Shutdown(t.Context()), "1 are lost")
	})
}
