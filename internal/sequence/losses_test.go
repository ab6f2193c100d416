// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func lostOf(job string, first, last, spans int64) Loss {
	return Loss{Step: Step{Job: job, Incarnation: "inc", Step: first}, Last: last, Spans: spans, Reason: ReasonRestart}
}

// Steps between two kills are whole: no loss is said of them.
func TestLosses_StepsThatDoNotFollow_AreApart(t *testing.T) {
	var all losses
	for _, step := range []int64{391, 195, 390, 7, 390} {
		all = all.add(lostOf("b", step, step, 32), 10)
	}
	all = all.add(lostOf("a", 196, 196, 1), 10)
	assert.Equal(t, losses{lostOf("a", 196, 196, 1), lostOf("b", 7, 7, 32), lostOf("b", 195, 195, 32), lostOf("b", 390, 391, 96)}, all.runs())
}

func TestLosses_BeyondTheLimit_AreJoined(t *testing.T) {
	var all losses
	spans := int64(0)
	for i := range int64(1000) {
		all = all.add(lostOf("a", 3*i, 3*i, 2), 10)
		spans += 2
		assert.LessOrEqual(t, len(all), 20)
	}
	got := int64(0)
	for _, of := range all.runs() {
		got += of.Spans
	}
	assert.Equal(t, spans, got, "no span is left out")
	for i := range 1000 {
		all = all.add(lostOf(string(rune('b'+i)), 1, 1, 1), 10)
	}
	assert.LessOrEqual(t, len(all), 20, "jobs are bounded as well")
}

// Many streams lost spans of two steps each, more than the limit: they are two runs.
func TestLosses_ManyStreams_AreStillRuns(t *testing.T) {
	var all losses
	for range 600 {
		all = all.add(lostOf("a", 7, 7, 1), 1024)
		all = all.add(lostOf("a", 950, 950, 1), 1024)
	}
	assert.Equal(t, losses{lostOf("a", 7, 7, 600), lostOf("a", 950, 950, 600)}, all.runs())
}
