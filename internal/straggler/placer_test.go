// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// A meeting takes the place of one of the step before, of which a member was not seen.
func TestAPlacedMeetingKeepsNothingOfTheOneBefore(t *testing.T) {
	gathered := func(seen int) []*gathering {
		g := &gathering{kind: model.KindCollective}
		form := &commForm{commName: commName{kind: model.KindCollective, comm: "a", size: 4, collective: model.AllReduce}}
		for i := range seen {
			at := &rankView{rankStep: &rankStep{rank: model.Rank{Rank: int64(i), ClockID: "c"}}, index: i}
			g.parties = append(g.parties, party{at: at, op: &commOp{form: form, start: int64(i), end: 1000}})
		}
		return []*gathering{g}
	}
	var p placer
	m := p.place(gathered(3))
	require.True(t, m[0].attributed)
	withdraw(m)
	require.True(t, m[0].open)
	m = p.place(gathered(4))
	withdraw(m)
	assert.True(t, m[0].attributed)
	assert.False(t, m[0].open)
}
