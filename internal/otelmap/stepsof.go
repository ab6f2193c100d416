// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// KeepSteps calls keep with the job, its incarnation and the step of each span of a rank that has a step, and
// removes the spans for which keep returns false. It returns how many, and whether any other span is there.
func KeepSteps(td ptrace.Traces, keep func(job, incarnation string, step int64) bool) (removed int, others bool) {
	for _, rs := range td.ResourceSpans().All() {
		rank, known := ResourceToRank(rs.Resource(), nil)
		for _, ss := range rs.ScopeSpans().All() {
			ss.Spans().RemoveIf(func(s ptrace.Span) bool {
				step, has := s.Attributes().Get(semconv.Step)
				if !known || !has || step.Type() != pcommon.ValueTypeInt {
					others = true
					return false
				}
				if keep(rank.JobID, rank.Incarnation, step.Int()) {
					return false
				}
				removed++
				return true
			})
		}
	}
	return removed, others
}
