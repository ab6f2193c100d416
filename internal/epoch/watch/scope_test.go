// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// node has a node tell of its own part of a save, one of so many, as its receiver does.
func (r *rig) node(n int, of, save int64, s model.DomainState) {
	r.revision++
	for _, kind := range []model.DomainKind{model.DomainModel, model.DomainPlace} {
		o := model.EpochObservation{
			JobID: "job", Generation: "g", Save: save, Domain: model.Domain{Kind: kind, ID: fmt.Sprint("of n", n)},
			State: s, Observer: fmt.Sprint("node", n), Revision: r.revision,
		}
		if s == model.DomainCommitted {
			o.Epoch = model.Some(save)
		}
		if kind == model.DomainPlace {
			o.Of, o.Parts = of, 1
		}
		r.hear(o)
	}
}

func (r *rig) verdict(save int64) epoch.Verdict { return r.engine.Judge("job", "g", save).Verdict }

// A node of which nothing is heard any more makes no save partial: nobody has seen it lack one.
func TestOneObserverFallsSilent(t *testing.T) {
	r := newRig(nil)
	for _, save := range []int64{100, 200} {
		r.node(0, 2, save, model.DomainCommitted)
		r.node(1, 2, save, model.DomainCommitted)
	}
	assert.Empty(t, r.pass(20*time.Minute))
	r.fall("node1")
	assert.Empty(t, r.pass(2*time.Hour))
	assert.Equal(t, epoch.Converging, r.verdict(200), "nor is it confirmed")
	assert.False(t, r.Jobs()[0].Frontier.OK)
}

// An agent that ends in the midst of a save has not seen its end.
func TestAnObserverEndsInTheMidst(t *testing.T) {
	r := newRig(nil)
	r.node(0, 2, 100, model.DomainCommitted)
	r.node(1, 2, 100, model.DomainTentative)
	r.fall("node1")
	assert.Empty(t, r.pass(2*time.Hour))
}

// A node that is there, and lacks a save that the others have, is what a mixed resume is made of.
func TestANodeLacksASave(t *testing.T) {
	r := newRig(nil)
	r.node(0, 2, 100, model.DomainCommitted)
	r.node(1, 2, 100, model.DomainCommitted)
	r.node(0, 2, 200, model.DomainCommitted)
	assert.Equal(t, []string{"200 partial 1"}, r.pass(30*time.Minute))
	r.node(1, 2, 200, model.DomainCommitted)
	assert.Equal(t, []string{"200 partial 2 ended"}, r.pass(time.Minute))
	assert.Equal(t, model.Some[int64](200), r.Jobs()[0].Frontier)
}

// While a node that must have a part of each save is silent, the part that is missing may be its own.
func TestANodeLacksASaveAndAnotherIsSilent(t *testing.T) {
	r := newRig(nil)
	for n := range 3 {
		r.node(n, 3, 100, model.DomainCommitted)
	}
	assert.Empty(t, r.pass(20*time.Minute))
	r.fall("node2")
	assert.Empty(t, r.pass(20*time.Minute))
	r.node(0, 3, 200, model.DomainCommitted)
	assert.Empty(t, r.pass(2*time.Hour))
	r.node(2, 3, 200, model.DomainCommitted)
	assert.Equal(t, []string{"200 partial 1"}, r.pass(20*time.Minute))
}

// Of a node that a spare has replaced nothing is expected any more.
func TestANodeIsReplaced(t *testing.T) {
	r := newRig(nil)
	r.node(0, 2, 100, model.DomainCommitted)
	r.node(1, 2, 100, model.DomainCommitted)
	assert.Empty(t, r.pass(20*time.Minute))
	r.fall("node1")
	r.node(0, 2, 200, model.DomainCommitted)
	r.node(2, 2, 200, model.DomainCommitted)
	assert.Empty(t, r.pass(2*time.Hour))
	assert.Equal(t, epoch.Converged, r.verdict(200))
	assert.Equal(t, []Job{{ID: "job", Generation: "g", Frontier: model.Some[int64](200)}}, r.Jobs())
}

// What an earlier life of an observer said is taken back by a later one, whatever comes of it late.
func TestALaterLife(t *testing.T) {
	r := newRig(nil)
	tell := func(life, revision int64, s model.DomainState) {
		o := model.EpochObservation{
			JobID: "job", Generation: "g", Save: 100, Domain: model.Domain{Kind: model.DomainModel}, Of: 1, State: s,
			Observer: "node0", Life: life, Revision: revision,
		}
		if s == model.DomainCommitted {
			o.Epoch = model.Some[int64](100)
		}
		r.Observe(&o, r.now)
	}
	tell(1, 9, model.DomainTentative)
	tell(2, 1, model.DomainCommitted)
	assert.Equal(t, epoch.Converged, r.verdict(100))
	tell(1, 10, model.DomainTentative)
	assert.Equal(t, epoch.Converged, r.verdict(100))
	assert.EqualValues(t, 1, r.Stats().Late)

	r.mute = true
	tell(0, 1, model.DomainTentative)
	assert.Equal(t, epoch.Unknown, r.verdict(100), "one without lives is another")

	r = newRig(nil)
	tell(5, 1, model.DomainCommitted)
	tell(3, 1, model.DomainTentative) // late, or of a clock that was set back
	assert.Equal(t, epoch.Converged, r.verdict(100), "a later one lives")
	r.pass(15 * time.Minute)
	assert.Equal(t, epoch.Unknown, r.verdict(100))
	tell(3, 2, model.DomainCommitted)
	assert.Equal(t, epoch.Converged, r.verdict(100), "the later one has fallen silent")
	assert.EqualValues(t, 1, r.Stats().Forgotten)
	tell(5, 2, model.DomainTentative)
	assert.Equal(t, epoch.Unknown, r.verdict(100), "both have lived since")
	tell(3, 3, model.DomainCommitted)
	assert.EqualValues(t, 2, r.Stats().Late)
	r.pass(time.Hour)
	assert.Zero(t, r.observers.Len())
	assert.Empty(t, r.lives)
}

// Of a save whose number of ranks was told wrong at first nothing is left.
func TestWhatIsWithdrawn(t *testing.T) {
	r := newRig(nil)
	r.tell(10, 10, 0)
	assert.Equal(t, []string{"10 partial 1"}, r.pass(14*time.Minute))
	r.revision++
	for _, o := range maps.Clone(r.said) {
		o.State, o.Epoch, o.Revision = model.DomainWithdrawn, model.Optional[int64]{}, r.revision
		r.hear(o)
		o.Generation, o.State, o.Epoch = "h", model.DomainCommitted, model.Some[int64](10)
		r.hear(o)
	}
	assert.Equal(t, []string{"10 partial 2 ended"}, r.pass(time.Minute))
	assert.Empty(t, r.pass(time.Hour))
	assert.Equal(t, []Job{{ID: "job", Generation: "h", Frontier: model.Some[int64](10)}}, r.Jobs())
}

// A process that goes on after its successor was started is not heard, however long that lasts.
func TestAZombie(t *testing.T) {
	r := newRig(nil)
	tell := func(life int64, s model.DomainState) {
		o := model.EpochObservation{
			JobID: "job", Generation: "g", Save: 100, Domain: model.Domain{Kind: model.DomainModel}, Of: 1, State: s,
			Observer: "node0", Life: life, Revision: 1,
		}
		if s == model.DomainCommitted {
			o.Epoch = model.Some[int64](100)
		}
		r.Observe(&o, r.now)
	}
	tell(1, model.DomainTentative)
	for range 30 {
		tell(2, model.DomainCommitted)
		tell(1, model.DomainTentative)
		assert.Empty(t, r.pass(4*time.Minute))
		assert.Equal(t, epoch.Converged, r.verdict(100))
	}
	assert.EqualValues(t, 30, r.Stats().Late)
}

// A later life takes the place of the one before also where there is room for no more observers.
func TestALaterLifeWithoutRoom(t *testing.T) {
	r := newRig(func(c *Config) { c.MaxObservers = 1 })
	o := model.EpochObservation{
		JobID: "job", Generation: "g", Save: 100, Domain: model.Domain{Kind: model.DomainModel}, Of: 1, State: model.DomainTentative,
		Observer: "node0", Life: 1, Revision: 1,
	}
	r.Observe(&o, r.now)
	o.Life, o.State, o.Epoch = 2, model.DomainCommitted, model.Some[int64](100)
	r.Observe(&o, r.now)
	assert.Equal(t, epoch.Converged, r.verdict(100))
	assert.Zero(t, r.Stats().Unfollowed)
	assert.Len(t, r.lives, 1)
}

// One who was silent, and of whom an old word is heard first, has seen nothing since.
func TestAnOldWordAfterSilence(t *testing.T) {
	r := newRig(nil)
	for n := range 2 {
		r.node(n, 2, 100, model.DomainCommitted)
	}
	r.node(0, 2, 200, model.DomainCommitted)
	r.node(1, 2, 200, model.DomainTentative)
	var old []model.EpochObservation
	for _, o := range r.said {
		if o.Observer == "node1" {
			old = append(old, o)
		}
	}
	r.fall("node1")
	assert.Empty(t, r.pass(40*time.Minute))
	for i := range old {
		r.Observe(&old[i], r.now)
	}
	assert.Empty(t, r.pass(9*time.Minute))
	r.node(1, 2, 200, model.DomainCommitted)
	assert.Empty(t, r.pass(time.Hour))
	assert.Equal(t, epoch.Converged, r.verdict(200))
}

// What an agent did not see of its folder it does not say again: it accuses nobody.
func TestALookThatIsBlind(t *testing.T) {
	r := newRig(nil)
	r.node(0, 2, 100, model.DomainCommitted)
	r.node(1, 2, 100, model.DomainCommitted)
	r.node(0, 2, 200, model.DomainCommitted)
	blind := func(is bool) {
		for k, o := range r.said {
			o.Blind = is && o.Observer == "node1"
			r.said[k] = o
		}
	}
	blind(true)
	assert.Empty(t, r.pass(time.Hour))
	blind(false)
	assert.Equal(t, []string{"200 partial 1"}, r.pass(6*time.Minute))
}

// A job that goes on with another number of ranks has lost nothing when retention takes the last save
// of the former.
func TestAResizedJob(t *testing.T) {
	for name, c := range map[string]struct {
		after int64
		want  []string
	}{
		"a newer one":   {200, nil},
		"the same one":  {100, nil},
		"nothing newer": {0, []string{"100 revoked 1"}},
	} {
		r := newRig(nil)
		tell := func(ranks string, save int64, s model.DomainState) {
			r.revision++
			r.hear(model.EpochObservation{
				JobID: "job", Generation: ranks, Save: save, Domain: model.Domain{Kind: model.DomainModel}, Of: 1, State: s, Epoch: model.Some(save),
				Observer: "node0", Revision: r.revision,
			})
		}
		tell("8 ranks", 100, model.DomainCommitted)
		assert.Empty(t, r.pass(20*time.Minute), name)
		if c.after > 0 {
			tell("16 ranks", c.after, model.DomainCommitted)
			assert.Empty(t, r.pass(20*time.Minute), name)
		}
		tell("8 ranks", 100, model.DomainAbsent)
		assert.Equal(t, c.want, r.pass(time.Hour), name)
	}
}

// That a job has one place more than it had makes none of its old saves partial.
func TestOnePlaceMore(t *testing.T) {
	r := newRig(nil)
	for n := range 2 {
		r.node(n, 2, 100, model.DomainCommitted)
	}
	assert.Empty(t, r.pass(20*time.Minute))
	for n := range 3 {
		if n < 2 {
			r.node(n, 3, 100, model.DomainCommitted)
		}
		r.node(n, 3, 200, model.DomainCommitted)
	}
	assert.Empty(t, r.pass(time.Hour))
	assert.Equal(t, model.Some[int64](200), r.Jobs()[0].Frontier)
	for n := range 2 {
		r.node(n, 3, 300, model.DomainCommitted)
	}
	assert.Equal(t, []string{"300 partial 1"}, r.pass(time.Hour), "it lacks one of those since")
}
