// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/rankstate"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// readSpans reads the operations among the spans.
func (h *hangs) readSpans(td ptrace.Traces) hub.Input {
	var problems otelmap.Problems
	ranks, now, size := otelmap.ReadOps(td, &problems), time.Now(), 0
	h.unread.Add(problems.Count())
	if len(ranks) == 0 {
		return hub.Input{}
	}
	for i := range ranks {
		size += ranks[i].Bytes()
	}
	return hub.Input{Bytes: size, Apply: func(time.Time) hub.Output {
		for i := range ranks {
			h.watch.AddOps(&ranks[i], now)
		}
		return hub.Output{}
	}}
}

// readRecords reads the events about ranks and networks.
func (h *hangs) readRecords(ld plog.Logs) hub.Input {
	b := batch{now: time.Now()}
	h.reading.Lock()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if !b.read(&h.states, rl.Resource(), lr) {
					h.foreign.Add(1)
				}
			}
		}
	}
	h.reading.Unlock()
	h.unread.Add(b.problems.Count())
	if len(b.feeds) == 0 {
		return hub.Input{}
	}
	return hub.Input{Bytes: b.size, Apply: func(time.Time) hub.Output {
		for _, f := range b.feeds {
			f(h.watch)
		}
		return hub.Output{}
	}}
}

// batch is what was read of some records.
type batch struct {
	now      time.Time
	problems otelmap.Problems
	feeds    []func(*watch.Watch)
	size     int                 // bytes
	lists    map[*int64]struct{} // lists of members; ranks of a job share them
}

// feedBytes is what one thing takes beside itself.
const feedBytes = 128

func (b *batch) add(size int, f func(*watch.Watch)) {
	b.size += feedBytes + size
	b.feeds = append(b.feeds, f)
}

// sizeOf returns what a state takes, with the lists of members that no state before it has.
func (b *batch) sizeOf(s *model.RankState) int {
	size := s.Bytes()
	for i := range s.Comms {
		members := s.Comms[i].Members
		at := unsafe.SliceData(members)
		if _, known := b.lists[at]; known || len(members) == 0 {
			continue
		}
		if b.lists == nil {
			b.lists = map[*int64]struct{}{}
		}
		b.lists[at] = struct{}{}
		size += len(members) * int(unsafe.Sizeof(*at))
	}
	return size
}

// read reports whether a record is of a kind that concerns hangs.
func (b *batch) read(states *rankstate.Decoder, of pcommon.Resource, lr plog.LogRecord) bool {
	p, now := &b.problems, b.now
	switch lr.EventName() {
	case semconv.EventRankState:
		if s, ok := otelmap.LogToRankState(of, lr, states, p); ok {
			b.add(b.sizeOf(&s), func(w *watch.Watch) { w.AddState(&s, now) })
		}
	case semconv.EventRankAbsent:
		if r, a, ok := otelmap.LogToAbsence(of, lr, p); ok {
			b.add(r.TextBytes()+len(a.Detail), func(w *watch.Watch) { w.AddAbsence(&r, a, now) })
		}
	case semconv.EventOpOpen:
		r, ok := otelmap.ResourceToRank(of, p)
		if o, read := otelmap.LogToOpen(lr, p); ok && read {
			b.add(r.TextBytes()+o.Bytes(), func(w *watch.Watch) { w.AddOpen(&r, &o, now) })
		}
	case semconv.EventFinding:
		if f, ok := otelmap.LogToFinding(lr, p); ok {
			what := cut.Text(lr.Body().AsString(), cut.MaxName)
			b.add(f.Bytes()+len(what), func(w *watch.Watch) { w.AddFinding(&f, what, now) })
		}
	case semconv.EventHostFact:
		if f, ok := otelmap.LogToFact(of, lr, p); ok {
			b.add(f.Rank.TextBytes()+len(f.Kind)+len(f.What), func(w *watch.Watch) { w.AddFact(&f, now) })
		}
	default:
		return false
	}
	return true
}
