// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	assert.Empty(t, h.order)
}

func TestTheOrderIsBounded(t *testing.T) {
	h := newHolder(1000, time.Now)
	out := ptrace.NewTraces()
	h.take(ofRank(-1, 0))
	for n := range int64(5000) {
		h.take(ofRank(n, 0))
		h.release(&straggler.StepReport{Incarnation: "inc", Step: n}, out)
		h.shrink(out)
	}
	assert.LessOrEqual(t, len(h.order), minOrder+2+1)
	assert.Len(t, h.steps, 1)
}
