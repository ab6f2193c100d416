// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// A step that was released and came again is as old as its second coming.
func TestPruneKnowsStepsThatCameAgain(t *testing.T) {
	at := time.Unix(0, 0)
	h := newHolder(1000, func() time.Time { return at })
	h.take(ofRank(1, 0))
	h.take(ofRank(2, 0))
	h.release(&straggler.StepReport{Incarnation: "inc", Step: 1}, ptrace.NewTraces())
	at = at.Add(time.Minute)
	h.take(ofRank(1, 0))
	out := ptrace.NewTraces()
	h.prune(at, out)
	assert.Equal(t, 3, out.SpanCount(), "step 2")
	assert.Equal(t, 3, h.spans)
	h.prune(at.Add(1), out)
	assert.Equal(t, 6, out.SpanCount())
	assert.Zero(t, h.spans)
	assert.Zero(t, h.steps.Len())
}

func TestHolder_ReleasedSteps_LeaveNothing(t *testing.T) {
	h := newHolder(1000, time.Now)
	out := ptrace.NewTraces()
	h.take(ofRank(-1, 0))
	for n := range int64(5000) {
		h.take(ofRank(n, 0))
		h.release(&straggler.StepReport{Incarnation: "inc", Step: n}, out)
		h.shrink(out)
	}
	assert.Equal(t, 1, h.steps.Len())
}

// Spans are held by what they take: a hundred large ones are as many as thousands of small ones.
func TestHolder_LargeSpans_AreBoundedInBytes(t *testing.T) {
	const most = 1000
	h := newHolder(most, time.Now)
	passed := 0
	for n := range int64(100) {
		td := ofRank(n, 0)
		spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		spans.At(0).Attributes().PutStr("large", strings.Repeat("x", 100_000))
		h.take(td)
		out := ptrace.NewTraces()
		h.shrink(out)
		passed += out.SpanCount()
		require.LessOrEqual(t, h.bytes, int64(most*heldBytes))
	}
	assert.Equal(t, 300, passed+h.spans)
	assert.Positive(t, h.spans)
	out := ptrace.NewTraces()
	h.releaseAll(out)
	assert.Zero(t, h.bytes)
	assert.Zero(t, h.spans)
}

// Each step that is held has a copy of its resource: a message with a large one and spans of many
// steps must not be held many times over.
func TestHolder_LargeResourceOfManySteps_IsNotCopiedForEach(t *testing.T) {
	const most, steps = 1000, 1000
	h := newHolder(most, time.Now)
	td := ofRank(0, 0)
	rs := td.ResourceSpans().At(0)
	rs.Resource().Attributes().PutStr("large", strings.Repeat("x", 100_000))
	spans := rs.ScopeSpans().At(0).Spans()
	for n := range int64(steps) {
		ofRank(n+1, 0).ResourceSpans().At(0).ScopeSpans().At(0).Spans().MoveAndAppendTo(spans)
	}
	all := td.SpanCount()
	h.take(td)
	assert.LessOrEqual(t, h.bytes, int64(2*most*heldBytes))
	assert.Less(t, h.steps.Len(), 20)
	assert.Equal(t, all, td.SpanCount()+h.spans, "what finds no room is passed on")
	assert.Equal(t, int64(steps+1-h.steps.Len()), h.unannotated)
}
