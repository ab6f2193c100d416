// SPDX-License-Identifier: Apache-2.0

package causality

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// TestAForgottenClockComesAgain: it is one clock, and not two that tell of each other.
func TestAForgottenClockComesAgain(t *testing.T) {
	cfg := testConfig()
	cfg.MaxClocks = 2
	now := time.Unix(0, base)
	cfg.Now = func() time.Time { return now }
	e := New(cfg, &fakeClocks{})
	meeting := func(n uint64, rank int64, clock string) Span {
		r, op := member(model.KindCollective, model.AllReduce, rank, 0)
		s := span(e, 1, n, 0, clock, 0)
		s.Is, s.Meet = Operation, MeetOf(r, op)
		return s
	}
	run(e, span(e, 1, 1, 0, "a", 0), span(e, 1, 2, 1, "b", 1e5), span(e, 1, 4, 3, "b", 1e6), meeting(5, 0, "a"))
	require.Equal(t, 1, e.evidence.pairs.Len())

	now = now.Add(2 * forgetAfter * time.Second)
	run(e)
	c := e.Clock("c")
	require.NotNil(t, c)
	assert.Zero(t, e.evidence.pairs.Len())
	before := e.Stats()
	assert.EqualValues(t, 1, before.Clocks)
	// A child of the first span, the parent of the one that waits, another member.
	run(e, span(e, 1, 6, 1, "a", 2e5), span(e, 1, 3, 0, "a", 3e5), meeting(7, 1, "a"))
	after := e.Stats()
	assert.Equal(t, before.Evidence.Samples, after.Evidence.Samples)
	assert.Equal(t, before.Relations, after.Relations)
	assert.Zero(t, e.evidence.pairs.Len())
}

// TestLongIDsNameNoClock: they would be kept as often as there are clocks.
func TestLongIDsNameNoClock(t *testing.T) {
	e := New(testConfig(), &fakeClocks{})
	assert.NotNil(t, e.Clock(strings.Repeat("x", maxID)))
	assert.Nil(t, e.Clock(strings.Repeat("x", maxID+1)))
	assert.EqualValues(t, 1, e.Stats().ClocksOver)
	assert.EqualValues(t, 1, e.Stats().Clocks)
}
