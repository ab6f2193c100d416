// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// restart gives the rig a new watch, which knows what the one before kept.
func (r *rig) restart(t *testing.T) *rig {
	t.Helper()
	data, err := r.Snapshot()
	require.NoError(t, err)
	r.Watch = NewWatch(r.cfg)
	require.NoError(t, r.Restore(data, r.now))
	return r
}

// A slice that differed stays in doubt over a restart until it is seen to agree.
func TestRestart_SliceStillInDoubt_StaysOpenUnderItsID(t *testing.T) {
	r := newRig(Config{})
	r.all(200, 8, 9, 8).said()
	open := r.Standing(r.now)[0]
	r.restart(t)
	assert.Empty(t, r.said())
	assert.Empty(t, r.all(300, 3, 3, 3).said(), "another slice agrees")
	require.Len(t, r.Standing(r.now), 1)
	assert.Equal(t, open.ID, r.Standing(r.now)[0].ID)
	assert.Equal(t, []string{"first revision 2 over true step 200 from 200 minority [1]"}, r.all(1200, 5, 5, 5).said())
}

func TestRestart_DiffersAgain_GoesOnUnderItsID(t *testing.T) {
	r := newRig(Config{})
	r.all(200, 8, 9, 8).said()
	open := r.Standing(r.now)[0]
	r.restart(t).all(1200, 5, 6, 5)
	assert.Equal(t, []string{"first revision 2 over false step 1200 from 200 minority [1]"}, r.said())
	assert.Equal(t, open.ID, r.Standing(r.now)[0].ID)
}

func TestRestart_GroupIsGone_IsClosedAfterSilence(t *testing.T) {
	r := newRig(Config{})
	r.all(200, 8, 9, 8).said()
	r.restart(t)
	r.now = r.now.Add(NewDefaultConfig().Silent - 2*time.Second)
	assert.Empty(t, r.said())
	r.now = r.now.Add(time.Second)
	assert.Equal(t, []string{"first revision 2 over true step 200 from 200 minority [1]"}, r.said())
}

// Watches that look after each step, or once, or a day later, name a finding alike.
func TestReplica_SameData_SameID(t *testing.T) {
	ids := map[string]bool{}
	for _, tt := range []struct {
		each bool
		late time.Duration
	}{{true, 0}, {false, 0}, {true, 24 * time.Hour}} {
		r := newRig(Config{})
		r.now = r.now.Add(tt.late)
		for step := int64(100); step <= 400; step += 100 {
			r.all(step, 7, 8, 7)
			if tt.each {
				r.said()
			}
		}
		r.said()
		require.Len(t, r.Standing(r.now), 1)
		ids[r.Standing(r.now)[0].ID] = true
	}
	assert.Len(t, ids, 1)
}

func TestWithheld_FoundAtEachLook_CountsOnce(t *testing.T) {
	r := newRig(Config{MaxEpisodes: 1})
	other := func(v *model.Fingerprint) { v.Group = "x" }
	r.all(100, 1, 2).tell(printed(0, 2, 100, 1, other), printed(1, 2, 100, 2, other))
	for range 10 {
		r.said()
	}
	assert.Equal(t, int64(1), r.Stats().Withheld)
}

// A group that makes room for another may still differ.
func TestEvictedGroup_IsNotReportedAsClosed(t *testing.T) {
	r := newRig(Config{Groups: 1})
	r.all(200, 8, 9, 8).said()
	r.tell(printed(0, 3, 200, 7, func(v *model.Fingerprint) { v.Group = "other" }))
	assert.Empty(t, r.said())
	assert.Empty(t, r.Standing(r.now))
	assert.Equal(t, []string{"first revision 2 over false step 200 from 200 minority [1]"}, r.all(200, 8, 9, 8).said(), "it is found again")
}
