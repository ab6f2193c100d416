package desyncconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// takeSpans takes the operations among the spans.
func (h *hub) takeSpans(td ptrace.Traces) {
	var problems otelmap.Problems
	ranks := otelmap.ReadOps(td, &problems)
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for i := range ranks {
		h.watch.AddOps(&ranks[i], now)
	}
	h.own.unread += problems.Count()
	h.snapshot()
}

// takeRecords takes the events that tell of ranks and networks.
func (h *hub) takeRecords(ld plog.Logs) {
	var problems otelmap.Problems
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for _, rl := range ld.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if !h.take(rl.Resource(), lr, &problems, now) {
					h.own.foreign++
				}
			}
		}
	}
	h.own.unread += problems.Count()
	h.snapshot()
}

// take reports whether a record is of a kind that concerns hangs.
func (h *hub) take(of pcommon.Resource, lr plog.LogRecord, p *otelmap.Problems, now time.Time) bool {
	switch lr.EventName() {
	case semconv.EventRankState:
		if s, ok := h.states.LogToRankState(of, lr, p); ok {
			h.watch.AddState(&s, now)
		}
	case semconv.EventRankAbsent:
		if r, a, ok := otelmap.LogToAbsence(of, lr, p); ok {
			h.watch.AddAbsence(&r, a, now)
		}
	case semconv.EventOpOpen:
		r, ok := otelmap.ResourceToRank(of, p)
		if o, read := otelmap.LogToOpen(lr, p); ok && read {
			h.watch.AddOpen(&r, &o, now)
		}
	case semconv.EventFinding:
		if f, ok := otelmap.LogToFinding(lr, p); ok {
			h.watch.AddFinding(&f, lr.Body().AsString(), now)
		}
	case semconv.EventHostFact:
		if f, ok := otelmap.LogToFact(of, lr, p); ok {
			h.watch.AddFact(&f, now)
		}
	default:
		return false
	}
	return true
}
