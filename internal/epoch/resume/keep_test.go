// SPDX-License-Identifier: Apache-2.0

package resume

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

func TestRestart_StillMixed_StaysOpenUnderItsID(t *testing.T) {
	r := newRig()
	r.at(0).tell(told(0, 2, 7), told(1, 2, 9)).said()
	open := r.Standing(r.now)[0]
	r.at(10).restart(t)
	assert.Empty(t, r.at(11).said())
	assert.Empty(t, r.at(12).tell(told(0, 2, 7)).said(), "one rank is not all")
	assert.Empty(t, r.at(13).tell(told(1, 2, 9)).said(), "nothing has changed")
	require.Len(t, r.Standing(r.now), 1)
	assert.Equal(t, open.ID, r.Standing(r.now)[0].ID)
	assert.Equal(t, []string{"first 2 true []"}, r.at(14).tell(told(0, 2, 5, number(2)), told(1, 2, 5, number(2))).said())
}

func TestRestart_EndedMeanwhile_IsClosed(t *testing.T) {
	for name, tell := range map[string]func(*rig){
		"all agree":                    func(r *rig) { r.tell(told(0, 2, 5, number(2)), told(1, 2, 5, number(2))) },
		"another life of the job does": func(r *rig) { r.tell(told(0, 2, 5, second), told(1, 2, 5, second)) },
		"no rank reports any more":     func(r *rig) { r.at(310) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			r.at(0).tell(told(0, 2, 7), told(1, 2, 9)).said()
			tell(r.at(10).restart(t))
			assert.Equal(t, []string{"first 2 true []"}, r.said())
		})
	}
}

// Watches that look at other times, or a day later, name a finding alike.
func TestResume_SameData_SameID(t *testing.T) {
	ids := map[string]bool{}
	for _, looks := range [][]int{{1, 2, 3}, {3}, {86_400, 86_401, 86_402}} {
		r := newRig()
		for i, v := range []*model.Resume{told(0, 3, 7), told(1, 3, 9), told(2, 3, 7)} {
			r.at(looks[min(i, len(looks)-1)]).tell(v)
			if i < len(looks)-1 {
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
	r := &rig{NewWatch(Config{Incarnations: 9, Ranks: 80, Silent: time.Hour, MaxEpisodes: 1}), began}
	r.at(0).tell(told(0, 2, 7), told(1, 2, 9), told(0, 2, 7, second), told(1, 2, 9, second))
	for s := range 10 {
		r.at(s).said()
	}
	assert.Equal(t, int64(1), r.Stats().Withheld)
}
