// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// takeSpans takes the operations among the spans.
func (h *hub) takeSpans(td ptrace.Traces) {
	var problems otelmap.Problems
	ranks := otelmap.ReadOps(td, &problems)
	b := &h.inbox
	b.mu.Lock()
	now := time.Now()
	for i := range ranks {
		b.add(sizeOfOps(&ranks[i]), func(w *watch.Watch) { w.AddOps(&ranks[i], now) })
	}
	b.mu.Unlock()
	b.unread.Add(problems.Count())
	h.deliver()
}

// takeRecords takes the events that tell of ranks and networks.
func (h *hub) takeRecords(ld plog.Logs) {
	var problems otelmap.Problems
	b := &h.inbox
	b.mu.Lock()
	now := time.Now()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if !b.take(rl.Resource(), lr, &problems, now) {
					b.foreign.Add(1)
				}
			}
		}
	}
	b.mu.Unlock()
	b.unread.Add(problems.Count())
	h.deliver()
}

// sizeOfOps is what operations of a rank take.
func sizeOfOps(r *model.RankOps) int {
	size := int(unsafe.Sizeof(*r)) + r.Rank.TextBytes()
	for i := range r.Ops {
		size += r.Ops[i].Bytes()
	}
	return size
}

// take reports whether a record is of a kind that concerns hangs. Records are the caller's
// again afterwards, so that they are read here.
func (b *inbox) take(of pcommon.Resource, lr plog.LogRecord, p *otelmap.Problems, now time.Time) bool {
	switch lr.EventName() {
	case semconv.EventRankState:
		if s, ok := otelmap.LogToRankState(of, lr, &b.states, p); ok {
			b.addState(&s, func(w *watch.Watch) { w.AddState(&s, now) })
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
