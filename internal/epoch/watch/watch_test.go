// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// rig is a watch, and its clock.
type rig struct {
	*Watch
	now      time.Time
	revision int64
	mute     bool // no heartbeats
	said     map[string]model.EpochObservation
}

func newRig(change func(*Config)) *rig {
	cfg := NewDefaultConfig()
	if change != nil {
		change(&cfg)
	}
	return &rig{Watch: New(cfg), now: time.Unix(1_760_000_000, 0), said: map[string]model.EpochObservation{}}
}

// tell has each rank's observer tell of a save: an epoch is committed, -1 is absent after it held
// the save's, 0 is tentative.
func (r *rig) tell(save int64, holds ...int64) {
	r.revision++
	for rank, h := range holds {
		o := model.EpochObservation{
			JobID: "job", Generation: "g", Save: save, Domain: model.Domain{Kind: model.DomainModel, ID: fmt.Sprint("rank ", rank)},
			State: model.DomainCommitted, Epoch: model.Some(h), Observer: fmt.Sprint("node", rank), Revision: r.revision,
		}
		switch h {
		case 0:
			o.State, o.Epoch = model.DomainTentative, model.Optional[int64]{}
		case -1:
			o.State, o.Epoch = model.DomainAbsent, model.Some(save)
		}
		r.hear(o)
	}
}

// hear has an observation heard, and with each heartbeat again.
func (r *rig) hear(o model.EpochObservation) {
	r.said[fmt.Sprint(o.Observer, o.Generation, o.Save, o.Domain)] = o
	r.Observe(&o, r.now)
}

// fall has an observer fall silent.
func (r *rig) fall(observer string) {
	for k, o := range r.said {
		if o.Observer == observer {
			delete(r.said, k)
		}
	}
}

func saveOf(f *model.Finding) int64 {
	ev, _ := evidence.As[evidence.Checkpoint](f.Evidence)
	return ev.Save
}

// pass lets time pass, and returns what is said meanwhile.
func (r *rig) pass(d time.Duration) (said []string) {
	for end := r.now.Add(d); r.now.Before(end); {
		r.now = r.now.Add(time.Minute)
		if !r.mute && r.now.Minute()%5 == 0 {
			for _, o := range r.said {
				r.Observe(&o, r.now)
			}
		}
		for _, e := range r.Tick(r.now) {
			text := fmt.Sprintf("%d %s %d", saveOf(&e), e.Class, e.Revision)
			if e.Status == model.StatusClosed {
				text += " ended"
			}
			said = append(said, text)
		}
	}
	return said
}

func TestHealthySavesAreNotTold(t *testing.T) {
	r := newRig(func(c *Config) { c.Silent = time.Hour })
	for save := int64(10); save <= 100; save += 10 {
		r.tell(save, 0, 0)
		assert.Empty(t, r.pass(3*time.Minute))
		r.tell(save, save, 0)
		assert.Empty(t, r.pass(3*time.Minute))
		r.tell(save, save, save)
		assert.Empty(t, r.pass(30*time.Minute-6*time.Minute))
		if save > 20 {
			r.tell(save-20, -1, -1) // retention
		}
		assert.Equal(t, []Job{{ID: "job", Generation: "g", Frontier: model.Some(save)}}, r.Jobs())
	}
}

func TestASaveThatStaysPartial(t *testing.T) {
	r := newRig(func(c *Config) { c.Silent = time.Hour })
	r.tell(10, 10, 0)
	assert.Empty(t, r.pass(9*time.Minute))
	assert.Equal(t, []string{"10 partial 1"}, r.pass(20*time.Minute), "once")
	require.Len(t, r.Standing(r.now), 1)
	f := r.Standing(r.now)[0]
	ev, ok := evidence.As[evidence.Checkpoint](f.Evidence)
	require.True(t, ok)
	assert.Equal(t, []any{"job", "g", int64(10), 1}, []any{f.JobID, ev.Generation, ev.Save, ev.MissingCount})
	assert.Equal(t, "model rank 1", ev.Missing[0].Domain)
	assert.Equal(t, time.Unix(1_760_000_000, 0).UnixNano(), f.Start)

	r.tell(10, 10, 10)
	assert.Equal(t, []string{"10 partial 2 ended"}, r.pass(time.Minute))
	assert.Empty(t, r.Standing(r.now))
	assert.Equal(t, int64(1), r.Stats().Opened)
	assert.Equal(t, int64(1), r.Stats().Closed)
}

func TestASaveThatIsMixed(t *testing.T) {
	r := newRig(nil)
	r.tell(10, 10, 10)
	r.tell(20, 20, 10) // rank 1 has loaded or kept another
	assert.Equal(t, []string{"20 mixed 1"}, r.pass(11*time.Minute))
	assert.Equal(t, []Job{{ID: "job", Generation: "g", Frontier: model.Some[int64](10), Lag: 10, Mixed: 1}}, r.Jobs())

	r.tell(20, 20, 0)
	assert.Equal(t, []string{"20 mixed 2 ended", "20 partial 3"}, r.pass(12*time.Minute), "what changes is not judged; it is the same save")
	r.tell(20, 20, 10)
	r.pass(11 * time.Minute)
	r.tell(20, 20, 20)
	assert.Equal(t, []string{"20 mixed 6 ended"}, r.pass(time.Minute))
}

// A pointer that is torn, and a place of which somebody is not sure, are no part of the save.
func TestWhatIsNoPartOfASave(t *testing.T) {
	for _, kind := range []model.DomainKind{model.DomainTracker, model.DomainPlace} {
		r := newRig(nil)
		r.tell(10, 10, 10)
		o := model.EpochObservation{
			JobID: "job", Generation: "g", Save: 10, Domain: model.Domain{Kind: kind}, State: model.DomainTentative, Observer: "node0", Revision: 9,
		}
		r.hear(o)
		assert.Empty(t, r.pass(14*time.Minute), kind)
	}
}

// Of old saves retention takes parts and then all; that the newest is lost costs the job its work.
func TestRevoked(t *testing.T) {
	r := newRig(nil)
	r.tell(10, 10, 10)
	r.tell(20, 20, 20)
	r.pass(time.Minute)
	r.tell(10, -1, -1)
	assert.Empty(t, r.pass(14*time.Minute))
	r.tell(20, -1, 20)
	assert.Equal(t, []string{"20 revoked 1"}, r.pass(12*time.Minute))
	r.tell(30, 30, 30)
	assert.Equal(t, []string{"20 revoked 2 ended"}, r.pass(time.Minute), "there is a newer one")
}

// What was never whole is not lost, also where parts of it are gone.
func TestWhatWasNeverWholeIsPartial(t *testing.T) {
	r := newRig(nil)
	r.tell(10, 10, 10)
	r.pass(time.Minute)
	r.tell(20, 20, 0)
	r.pass(time.Minute)
	r.tell(20, 20, -1)
	assert.Equal(t, []string{"20 partial 1"}, r.pass(12*time.Minute))
	r.tell(30, 30, 30)
	assert.Equal(t, []string{"20 partial 2 ended"}, r.pass(time.Minute), "there is a newer one")
	r.tell(10, -1, 10)
	assert.Empty(t, r.pass(12*time.Minute), "retention stops in the midst of an older one")
}

// A heartbeat is no change; it keeps what is known.
func TestHeartbeats(t *testing.T) {
	r := newRig(nil)
	r.mute = true
	r.tell(10, 10, 0)
	var said []string
	for range 20 {
		r.revision--
		r.tell(10, 10, 0)
		said = append(said, r.pass(5*time.Minute)...)
	}
	assert.Equal(t, []string{"10 partial 1"}, said)
	assert.Zero(t, r.Stats().Forgotten)
}

// That nobody sees a save any more mends nothing, and confirms nothing.
func TestSilence(t *testing.T) {
	r := newRig(nil)
	r.tell(10, 10, 10)
	r.tell(20, 20, 0)
	assert.Equal(t, []string{"20 partial 1"}, r.pass(14*time.Minute))
	r.mute = true
	assert.Equal(t, model.Some[int64](10), r.Jobs()[0].Frontier)
	assert.Empty(t, r.pass(18*time.Minute))
	assert.EqualValues(t, 2, r.Stats().Forgotten)
	assert.False(t, r.Jobs()[0].Frontier.OK)
	assert.Len(t, r.Standing(r.now), 1)
	assert.Equal(t, []string{"20 partial 2 ended"}, r.pass(14*time.Minute))

	r.revision--
	r.mute = false
	r.tell(10, 10, 10) // they are heard again, with nothing new
	assert.Empty(t, r.pass(9*time.Minute), "of what they said before nobody knows whether it is so")
	assert.Equal(t, []string{"20 partial 3"}, r.pass(5*time.Minute), "the finding of before")
	assert.Equal(t, model.Some[int64](10), r.Jobs()[0].Frontier)
}

// A domain that is heard of for the first time is expected of all saves of which nobody says how
// many they have; nobody is accused of what nobody speaks of.
func TestAnotherDomain(t *testing.T) {
	r := newRig(func(c *Config) { c.Silent = time.Hour })
	r.tell(10, 10, 10)
	assert.Empty(t, r.pass(12*time.Minute))
	r.tell(20, 20, 20, 20)
	assert.Empty(t, r.pass(12*time.Minute))
	assert.Equal(t, epoch.Converging, r.engine.Judge("job", "g", 10).Verdict)
}

func TestBounds(t *testing.T) {
	r := newRig(func(c *Config) {
		c.MaxEpisodes, c.MaxObservers = 2, 1
		c.Engine = epoch.Config{Saves: 4}
		c.Silent = time.Hour
	})
	for save := int64(10); save <= 50; save += 10 {
		r.tell(save, 0, save)
	}
	assert.Equal(t, []string{"20 partial 1", "30 partial 1"}, r.pass(10*time.Minute))
	assert.Positive(t, r.Stats().Withheld)
	assert.Positive(t, r.Stats().Unfollowed)
	assert.Len(t, r.saves, 4)
	r.tell(60, 60, 60)
	assert.Equal(t, []string{"40 partial 1"}, r.pass(time.Minute), "the one that left for it may still be partial")
	bad := model.EpochObservation{State: "done"}
	r.Observe(&bad, r.now)
	assert.EqualValues(t, 1, r.Stats().Engine.Refused)
	low := model.EpochObservation{JobID: "job", Generation: "g", Save: 1, Domain: model.Domain{Kind: model.DomainModel, ID: "rank 0"}, State: model.DomainTentative, Observer: "node0"}
	r.Observe(&low, r.now)
	assert.Len(t, r.saves, 4, "it is lower than all that there is room for")
}

// When one was heard who is not followed, nobody knows.
func TestWhoIsNotFollowedAccusesNobody(t *testing.T) {
	r := newRig(func(c *Config) { c.MaxObservers = 1 })
	r.tell(10, 10, 0)
	assert.Empty(t, r.pass(time.Hour))
	assert.Positive(t, r.Stats().Unfollowed)
}

func TestValidate(t *testing.T) {
	good := NewDefaultConfig()
	require.NoError(t, good.Validate())
	for want, change := range map[string]func(*Config){
		"check settle: got 0s; want at least 1s":      func(c *Config) { c.Settle = 0 },
		"check silent: got 1s; want at least settle":  func(c *Config) { c.Silent = time.Second },
		"check max_episodes: got 0; want at least 1":  func(c *Config) { c.MaxEpisodes = 0 },
		"check max_observers: got 0; want at least 1": func(c *Config) { c.MaxObservers = 0 },
	} {
		c := NewDefaultConfig()
		change(&c)
		require.EqualError(t, c.Validate(), want)
	}
}
