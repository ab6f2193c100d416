// SPDX-License-Identifier: Apache-2.0

package clocksconnector

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/timeline"
)

// consume takes the clock events among the records.
func (h *hub) consume(ld plog.Logs) {
	for _, rl := range ld.ResourceLogs().All() {
		h.learnNames(rl.Resource().Attributes())
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				h.take(lr)
			}
		}
	}
}

// learnNames joins the name of a host with the id that stands in its clocks: spans
// may know only one of them.
func (h *hub) learnNames(resource pcommon.Map) {
	name, okName := resource.Get(semconv.HostName)
	id, okID := resource.Get(semconv.HostID)
	if okName && okID {
		h.timeline.Alias(name.AsString(), id.AsString())
	}
}

func (h *hub) take(lr plog.LogRecord) {
	switch lr.EventName() {
	case semconv.EventClockEdge:
		e, _, err := clockmap.LogToEdge(lr)
		if err == nil {
			h.own.edges.Add(1)
			err = h.timeline.AddEdge(e)
		}
		h.refused(err)
	case semconv.EventClockModel:
		m, _, err := clockmap.LogToModel(lr)
		if err == nil {
			h.own.models.Add(1)
			err = h.timeline.AddModel(m)
		}
		h.refused(err)
	default:
		h.own.foreign.Add(1)
	}
}

func (h *hub) refused(err error) {
	if err != nil {
		h.own.refused.Add(1)
		h.why.CompareAndSwap(nil, &err)
	}
}

// events writes models and findings as log events.
func events(out *timeline.Outcome) plog.Logs {
	ld := otelmap.FindingsToLogs(out.Findings)
	if len(out.Models) == 0 {
		return ld
	}
	sl := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	sl.Scope().SetName(otelmap.ScopeName)
	sl.LogRecords().EnsureCapacity(len(out.Models))
	for i := range out.Models {
		clockmap.ModelToLog(&out.Models[i], sl.LogRecords().AppendEmpty())
	}
	return ld
}
