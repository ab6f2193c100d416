// SPDX-License-Identifier: Apache-2.0

package findingsconnector

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// A rank was slow, then hung, on a host whose clock had stepped: one incident, and in
// Jaeger one trace.
func TestHangIsOfTheIncidentOfItsStraggler(t *testing.T) {
	r := newRig(t, nil)
	slow := slowRank("slow", 1, 9)
	slow.Host, slow.Time = "node3", 40
	hang := model.Finding{
		ID: "hang", Revision: 1, Status: model.StatusOpen, Kind: model.FindingDesync, Class: model.ClassNotScheduled,
		JobID: "job", Incarnation: "inc", Start: 35, Time: 60, Rank: model.Some(int64(9)), Host: "node3", Severity: model.SeverityError,
		Op: "all_reduce 812", CommID: "0xabc", Waiting: []int64{1, 2, 3}, WaitingCount: model.Some(int64(3)), Through: model.Some(int64(12)),
		Stack: "train.py:117 load",
	}
	clock := model.Finding{
		ID: "clock", Revision: 1, Status: model.StatusOpen, Kind: model.FindingClock, Class: model.ClassStep, Start: 30, Time: 45, Host: "node3",
	}
	r.consume(t, slow, hang, clock)
	r.stop(t)
	for _, f := range r.findings() {
		assert.Equal(t, r.findings()[0].IncidentID, f.IncidentID, f.ID)
	}
	s := spanNamed(t, r, "finding desync")
	assert.Equal(t, ptrace.StatusCodeError, s.Status().Code())
	for name, want := range map[string]any{
		"lockstep.finding.waiting.count": int64(3), "lockstep.finding.waiting.through": int64(12), "lockstep.finding.stack": "train.py:117 load",
		"lockstep.finding.waiting": []any{int64(1), int64(2), int64(3)},
	} {
		assert.Equal(t, want, s.Attributes().AsRaw()[name], name)
	}
	assert.Equal(t, spanNamed(t, r, "finding straggler").TraceID(), s.TraceID())
}

func spanNamed(t *testing.T, r *rig, name string) ptrace.Span {
	t.Helper()
	for _, td := range r.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				if s.Name() == name {
					return s
				}
			}
		}
	}
	require.Fail(t, "no span", name)
	return ptrace.Span{}
}
