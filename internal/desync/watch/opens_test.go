// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Where no states come, spans and operations that do not end must do: who completes nothing
// and has told of nothing that is open has not come to it. That takes until nothing was
// heard of it for as long as a state counts.
func TestSpansAndOpenOperationsAlone(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.opens = true
	p.run(30 * time.Second)
	since := p.now
	p.ranks[2].stuck = true
	p.run(time.Minute)
	f := p.only()
	assert.Equal(t, model.ClassNotScheduled, f.Class)
	assert.Equal(t, model.Some(int64(2)), f.Rank)
	assert.Equal(t, model.Some(int64(3)), f.WaitingCount)
	assert.Less(t, p.told(since), 15*time.Second)

	p.ranks[2].stuck = false
	p.run(10 * time.Second)
	assert.Equal(t, model.StatusClosed, p.only().Status)
	for _, r := range p.w.jobs[jobKey{"job", "life"}].ranks {
		assert.Empty(t, r.opens)
	}
}

// An end that was not told does not leave an operation open for ever.
func TestLostEndOfAnOperation(t *testing.T) {
	p := newPlant(t, 4, 100*time.Millisecond)
	p.opens = true
	p.run(30 * time.Second)
	p.ranks[2].stuck = true
	p.run(5 * time.Second)
	p.ranks[2].stuck = false
	for _, r := range p.ranks {
		r.told = false
	}
	p.run(10 * time.Second)
	j := p.w.jobs[jobKey{"job", "life"}]
	r := j.ranks[0]
	require.NotEmpty(t, r.opens)
	assert.Empty(t, j.fromOpens(r, &model.OpenOp{}).Ops)
	p.run(time.Minute)
	assert.Empty(t, p.w.Standing())
}

// What dumps say of open operations, their states say better.
func TestOpenOperationsOfDumpsAreLeftOut(t *testing.T) {
	w, now := New(NewDefaultConfig()), time.Unix(1_760_000_000, 0)
	w.AddOpen(&model.Rank{JobID: "job"}, &model.OpenOp{Op: model.Op{
		Kind: model.KindCollective, Comm: model.Comm{ID: "0"}, Collective: model.Collective{Seq: model.Some(int64(1)), SeqScope: model.ScopeComm},
	}}, now)
	assert.Empty(t, w.jobs)
	assert.Equal(t, int64(1), w.Stats().Opens)
}
