// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Steps that a reader of rings delivers again, of which the engine does not know that they
// were judged, since it began later, change no finding.
func TestStepsThatComeAfterLaterOnesAreNotJudged(t *testing.T) {
	slow := each(4, "c20 *", map[int]program{2: "c40 *"})
	w := newWorld(t, 4)
	for n := int64(507); n <= 530; n++ {
		w.step(n, slow...)
	}
	w.e.Flush()
	before := w.e.Verdicts()
	require.Len(t, before, 1)
	w.drop[3] = true // its reader did not restart
	for n := int64(480); n <= 506; n++ {
		w.step(n, slow...)
	}
	w.now = w.now.Add(time.Minute)
	assert.Empty(t, w.e.Expire())
	w.e.Flush()
	assert.Empty(t, w.e.Verdicts())
	assert.Equal(t, 24, w.e.Jobs()[0].Judged)
	assert.Positive(t, w.e.Stats().LateOps)
}

// A step that was open before waits for its deadline, and is reported and not judged.
func TestAStepThatClosesBehindLaterOnesIsReportedOnly(t *testing.T) {
	slow := each(4, "c20 *", map[int]program{2: "c40 *"})
	w := newWorld(t, 4)
	w.drop[3] = true
	w.step(506, slow...)
	w.drop[3] = false
	for n := int64(507); n <= 530; n++ {
		w.step(n, slow...)
	}
	w.now = w.now.Add(time.Minute)
	require.Len(t, w.e.Expire(), 1)
	w.e.Flush()
	vs := w.e.Verdicts()
	require.Len(t, vs, 1)
	f := vs[0].Finding
	assert.Equal(t, []model.Optional[int64]{model.Some(int64(507)), model.Some(int64(530))}, []model.Optional[int64]{f.StepFirst, f.StepLast})
}

// A program that counts again, beyond what is remembered, is judged, and its findings span both.
func TestStepsOfAProgramThatCountsAgainAreJudged(t *testing.T) {
	slow := each(4, "c20 *", map[int]program{2: "c40 *"})
	w := newWorld(t, 4)
	for _, from := range []int64{closedMemory + 100, 0} {
		for n := range int64(12) {
			w.step(from+n, slow...)
		}
	}
	w.e.Flush()
	vs := w.e.Verdicts()
	require.Len(t, vs, 1)
	f := vs[0].Finding
	assert.LessOrEqual(t, f.StepFirst.V, f.StepLast.V)
	assert.LessOrEqual(t, f.Start, f.Time)
	assert.Equal(t, 24, w.e.Jobs()[0].Judged)
}
