// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
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
		b.add(1+len(ranks[i].Ops)/opsPerItem, func(w *watch.Watch) { w.AddOps(&ranks[i], now) })
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

// sizeOf is the room that a state takes, in items. Most say what is in flight; a dump has
// thousands of operations. Lists of members are shared by the ranks of a job.
func sizeOf(s *model.RankState) int {
	stacks := 0
	for _, text := range s.Stacks {
		stacks += len(text)
	}
	return 1 + (len(s.Ops)+len(s.Comms))/opsPerItem + stacks/bytesPerItem
}

// take reports whether a record is of a kind that concerns hangs. Records are the caller's
// again afterwards, so that they are read here.
func (b *inbox) take(of pcommon.Resource, lr plog.LogRecord, p *otelmap.Problems, now time.Time) bool {
	switch lr.EventName() {
	case semconv.EventRankState:
		if s, ok := b.states.LogToRankState(of, lr, p); ok {
			b.add(sizeOf(&s), func(w *watch.Watch) { w.AddState(&s, now) })
		}
	case semconv.EventRankAbsent:
		if r, a, ok := otelmap.LogToAbsence(of, lr, p); ok {
			b.add(1, func(w *watch.Watch) { w.AddAbsence(&r, a, now) })
		}
	case semconv.EventOpOpen:
		r, ok := otelmap.ResourceToRank(of, p)
		if o, read := otelmap.LogToOpen(lr, p); ok && read {
			b.add(1, func(w *watch.Watch) { w.AddOpen(&r, &o, now) })
		}
	case semconv.EventFinding:
		if f, ok := otelmap.LogToFinding(lr, p); ok {
			what := lr.Body().AsString()
			b.add(1, func(w *watch.Watch) { w.AddFinding(&f, what, now) })
		}
	case semconv.EventHostFact:
		if f, ok := otelmap.LogToFact(of, lr, p); ok {
			b.add(1, func(w *watch.Watch) { w.AddFact(&f, now) })
		}
	default:
		return false
	}
	return true
}
