// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

var began = time.Unix(1_000_000, 0)

// rig is a watch at some seconds.
type rig struct {
	*Watch
	now time.Time
}

func newRig() *rig { return &rig{NewWatch(NewDefaultConfig()), began} }

func (r *rig) at(seconds int) *rig {
	r.now = began.Add(time.Duration(seconds) * time.Second)
	return r
}

func (r *rig) tell(of ...*model.Resume) *rig {
	for _, v := range of {
		r.Observe(v, r.now)
	}
	return r
}

// said is what the next look says: key, revision, whether it is over, ranks that are named.
func (r *rig) said() (out []string) {
	for _, e := range r.Tick(r.now) {
		out = append(out, fmt.Sprintf("%s %d %t %v", e.Incarnation, e.Revision, e.Status == model.StatusClosed, e.Ranks))
	}
	return out
}

func second(v *model.Resume) { v.Rank.Incarnation = "second" }

func TestMixedIsToldWithTheNextLook(t *testing.T) {
	r := newRig()
	assert.Empty(t, r.at(0).tell(told(0, 3, 7)).said())
	assert.Equal(t, []string{"first 1 false []"}, r.at(1).tell(told(1, 3, 9)).said(), "before the third has told")
	assert.Equal(t, []string{"first 2 false [1]"}, r.at(2).tell(told(2, 3, 7)).said())
	assert.Empty(t, r.at(3).tell(told(2, 3, 7), told(1, 3, 9)).said(), "what is told again is no news")
	require.Len(t, r.Standing(r.now), 1)
	assert.Equal(t, map[string]int{"job": 1}, r.Mixed())
	assert.Equal(t, []any{"llama", began.Add(time.Second).UnixNano()}, []any{r.Standing(r.now)[0].JobName, r.Standing(r.now)[0].Start})
	assert.Equal(t, []string{"first 3 true [1]"}, r.at(4).tell(told(0, 3, 5, number(2)), told(1, 3, 5, number(2)), told(2, 3, 5, number(2))).said())
	assert.Equal(t, map[string]int{"job": 0}, r.Mixed())
	assert.Empty(t, r.Standing(r.now))
	assert.Equal(t, []int64{1, 1, 8}, []int64{r.Stats().Opened, r.Stats().Closed, r.Stats().Resumes})
}

func TestANewerLifeThatAgreesEndsIt(t *testing.T) {
	r := newRig()
	r.at(0).tell(told(0, 2, 7), told(1, 2, 9)).said()
	assert.Empty(t, r.at(60).tell(told(0, 2, 7, second)).said(), "one rank of it is not all")
	assert.Equal(t, []string{"first 2 true []"}, r.at(61).tell(told(1, 2, 7, second)).said())
	assert.Empty(t, r.at(62).said())

	r = newRig()
	r.at(0).tell(told(0, 2, 7), told(1, 2, 9)).said()
	assert.Equal(t, []string{"second 1 false []"}, r.at(60).tell(told(0, 2, 7, second), told(1, 2, 8, second)).said(), "it is mixed, too")

	r = newRig()
	r.at(0).tell(told(0, 2, 7), told(1, 2, 9)).said()
	r.at(60).tell(told(0, 2, 7, second), told(1, 2, 7, second))
	assert.Empty(t, r.at(61).tell(told(0, 2, 7)).said(), "a job that goes on is not over because another has its name")
}

func TestSilenceEndsIt(t *testing.T) {
	r := newRig()
	r.at(0).tell(told(0, 2, 7), told(1, 2, 9)).said()
	assert.Empty(t, r.at(200).tell(told(0, 2, 7)).said())
	assert.Empty(t, r.at(499).said())
	assert.Equal(t, []string{"first 2 true []"}, r.at(500).said())
	assert.Equal(t, []any{int64(1), 0}, []any{r.Stats().Silent, r.Stats().Ranks})
	assert.Empty(t, r.lives)
}

func TestWhatLeaves_IsNotReportedAsClosed(t *testing.T) {
	r := &rig{NewWatch(Config{Incarnations: 1, Ranks: 8, Silent: time.Hour, MaxEpisodes: 1}), began}
	r.at(0).tell(told(0, 2, 7), told(1, 2, 9)).said()
	assert.Empty(t, r.at(1).tell(told(0, 2, 7, second)).said())
	assert.Empty(t, r.Standing(r.now))
	assert.Len(t, r.lives, 1)
	assert.Equal(t, []string{"first 2 false []"}, r.at(2).tell(told(0, 2, 7), told(1, 2, 9)).said(), "it is found again")
}

func TestAFloodIsBounded(t *testing.T) {
	r := &rig{NewWatch(Config{Incarnations: 4, Ranks: 8, Silent: time.Hour, MaxEpisodes: 1}), began}
	for i := range 1000 {
		r.tell(told(0, 2, 7, func(v *model.Resume) { v.Rank.Incarnation = fmt.Sprint(i) }))
		require.LessOrEqual(t, len(r.lives), 4, "those that the engine holds")
	}
}

func TestEpisodesAreBounded(t *testing.T) {
	r := &rig{NewWatch(Config{Incarnations: 9, Ranks: 80, Silent: time.Hour, MaxEpisodes: 1}), began}
	r.at(0).tell(told(0, 2, 7), told(1, 2, 9), told(0, 2, 7, second), told(1, 2, 9, second))
	assert.Len(t, r.said(), 1)
	assert.Equal(t, int64(1), r.Stats().Withheld)
}

func TestConfig(t *testing.T) {
	c := NewDefaultConfig()
	require.NoError(t, c.Validate())
	c = Config{}
	require.EqualError(t, c.Validate(), "check silent: got 0s; want at least 1s\ncheck max_incarnations: got 0; want at least 1\n"+
		"check max_ranks: got 0; want at least 1\ncheck max_episodes: got 0; want at least 1")
	assert.Equal(t, epoch.Unknown, New(c).Judge(key).Verdict)
}
