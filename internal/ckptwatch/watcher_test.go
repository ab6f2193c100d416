// SPDX-License-Identifier: Apache-2.0

package ckptwatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

var begin = time.Unix(1_760_000_000, 0)

func at(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }

func watcher() *Watcher {
	return New(Config{JobID: "job", Observer: "here", Heartbeat: time.Minute, MaxDomains: 100})
}

// root has one save of two ranks, of which the second is in a state.
func root(epoch int64, second model.DomainState) *ckpt.Root {
	domain := func(rank int, s model.DomainState) ckpt.Domain {
		d := ckpt.Domain{Domain: model.Domain{Kind: model.DomainModel, ID: fmt.Sprint("rank ", rank)}, State: s}
		if s == model.DomainCommitted {
			d.Epoch = model.Some(epoch)
		}
		return d
	}
	return &ckpt.Root{Saves: []ckpt.Save{{
		Path: "x", Epoch: model.Some(epoch), World: model.Some[int64](2), Domains: []ckpt.Domain{domain(0, model.DomainCommitted), domain(1, second)},
	}}}
}

func revisions(obs []model.EpochObservation) (out []int64) {
	for i := range obs {
		out = append(out, obs[i].Revision)
	}
	return out
}

func told(obs []model.EpochObservation) (out []string) {
	for i := range obs {
		o := &obs[i]
		text := fmt.Sprintf("%d %s %s: %s", o.Save, o.Domain.Kind, o.Domain.ID, o.State)
		if o.Epoch.OK {
			text += fmt.Sprint(" ", o.Epoch.V)
		}
		out = append(out, text)
	}
	return out
}

func TestChangesAreToldOnceAndAllOnAHeartbeat(t *testing.T) {
	w := watcher()
	first := w.Look(root(10, model.DomainCommitted), at(0))
	all := []string{"10 place : reflecting", "10 model rank 0: committed 10", "10 model rank 1: committed 10", "10 place : committed 10"}
	require.Equal(t, all, told(first))
	for _, o := range first {
		assert.Equal(t, []any{"job", "here", "2 ranks", at(0).UnixNano()}, []any{o.JobID, o.Observer, o.Generation, o.Time})
	}
	assert.Equal(t, []int64{2, 2, 2, 3}, revisions(first))
	assert.EqualValues(t, 2, first[3].Parts)
	assert.Empty(t, w.Look(root(10, model.DomainCommitted), at(30)))
	again := w.Look(root(10, model.DomainCommitted), at(60))
	assert.Equal(t, all, told(again))
	assert.Equal(t, []int64{2, 2, 2, 3}, revisions(again), "nothing has changed since")

	torn := w.Look(root(10, model.DomainTentative), at(61))
	assert.Equal(t, []string{"10 place : tentative", "10 model rank 1: tentative"}, told(torn))
	assert.Equal(t, []int64{9, 8}, revisions(torn))
	assert.Equal(t, "model rank 1 is tentative", torn[0].Witness)
}

// What stands for domains that are not known yet is none: it makes the save doubtful.
func TestWhatNeverConfirmedIsNoDomain(t *testing.T) {
	w := watcher()
	obs := w.Look(root(10, model.DomainAbsent), at(0))
	assert.Equal(t, []string{"10 place : tentative", "10 model rank 0: committed 10"}, told(obs))
	assert.Equal(t, "model rank 1 is absent", obs[0].Witness)
	w.Look(root(10, model.DomainCommitted), at(1))
	obs = w.Look(root(20, model.DomainAbsent), at(2))
	assert.Contains(t, told(obs), "20 model rank 1: absent", "it has confirmed before")

	r := root(30, model.DomainCommitted)
	r.Saves[0].Unproven = "nothing proves it"
	assert.Contains(t, told(w.Look(r, at(3))), "30 place : tentative")
	r.Saves[0].Unproven, r.Saves[0].WorldUnknown = "", true
	obs = w.Look(r, at(4))
	require.Len(t, obs, 1)
	assert.Equal(t, "nothing says how many ranks wrote it", obs[0].Witness)
}

func TestWhatIsThereNoMoreIsATombstone(t *testing.T) {
	w := watcher()
	w.Look(root(10, model.DomainCommitted), at(0))
	both := root(10, model.DomainCommitted)
	both.Saves = append(both.Saves, root(20, model.DomainCommitted).Saves...)
	w.Look(both, at(1))
	gone := w.Look(root(20, model.DomainCommitted), at(2))
	assert.Equal(t, []string{"10 place : absent 10", "10 model rank 0: absent 10", "10 model rank 1: absent 10"}, told(gone))
	assert.Equal(t, 6, w.Len())
	for i := range goneFor + 1 {
		assert.Equal(t, i < goneFor, len(w.Look(root(20, model.DomainCommitted), at(60*(i+1)))) == 7, "heartbeat %d", i)
	}
	assert.Equal(t, 3, w.Len(), "it is followed no longer")
}

// A save that is deleted bit by bit is lost as one that is deleted at once.
func TestWhatGoesBitByBitIsATombstone(t *testing.T) {
	w := watcher()
	w.Look(root(10, model.DomainCommitted), at(0))
	assert.Equal(t, []string{"10 place : tentative", "10 model rank 1: absent 10"}, told(w.Look(root(10, model.DomainAbsent), at(1))))
	assert.Equal(t, []string{"10 place : absent 10", "10 model rank 0: absent 10"}, told(w.Look(&ckpt.Root{}, at(2))))

	never := watcher()
	never.Look(root(10, model.DomainCommitted), at(0)) // its ranks are known
	both := root(10, model.DomainCommitted)
	both.Saves = append(both.Saves, root(20, model.DomainTentative).Saves...)
	never.Look(both, at(1))
	assert.Equal(t, []string{"20 place : absent", "20 model rank 0: absent 20", "20 model rank 1: absent"}, told(never.Look(root(10, model.DomainCommitted), at(2))), "it was never whole")
}

// A folder that could not be read whole proves nothing of what was not found in it.
func TestWhatIsNotSeenMayBeThere(t *testing.T) {
	for name, spoil := range map[string]func(*ckpt.Root){
		"unreadable":       func(r *ckpt.Root) { r.Problems = append(r.Problems, ckpt.Problem{Severity: ckpt.Unreadable}) },
		"saves left out":   func(r *ckpt.Root) { r.Counts.SavesLeftOut = 1 },
		"entries left out": func(r *ckpt.Root) { r.Counts.EntriesLeftOut = 1 },
		"problems lost":    func(r *ckpt.Root) { r.Counts.ProblemsLost = 1 },
	} {
		w := watcher()
		w.Look(root(10, model.DomainCommitted), at(0))
		r := &ckpt.Root{}
		spoil(r)
		assert.Empty(t, w.Look(r, at(1)), name)
		assert.EqualValues(t, 1, w.Stats().Partial, name)
		assert.Len(t, w.Look(&ckpt.Root{}, at(2)), 3, name)
	}
}

// A folder that can be read, and holds no save, has lost those that it had.
func TestAFolderThatWasCleared(t *testing.T) {
	w := watcher()
	w.Look(root(10, model.DomainCommitted), at(0))
	r := &ckpt.Root{Empty: true, Problems: []ckpt.Problem{{Severity: ckpt.Unreadable, What: "got no checkpoint of a known layout"}}}
	assert.Equal(t, []string{"10 place : absent 10", "10 model rank 0: absent 10", "10 model rank 1: absent 10"}, told(w.Look(r, at(1))))
}

// What is in a folder with more entries than are read may lack what was not read.
func TestEntriesThatAreNotRead(t *testing.T) {
	w := watcher()
	r := root(10, model.DomainCommitted)
	r.Counts.EntriesLeftOut = 1
	assert.Equal(t, []string{"10 place : tentative", "10 model rank 0: committed 10", "10 model rank 1: committed 10"}, told(w.Look(r, at(0))))
}

// A save of which a part can not be read for a moment, as on a network file system, is not worse
// for it; where it stays so, it is.
func TestWhatCanNotBeReadForAMoment(t *testing.T) {
	w := watcher()
	w.Look(root(10, model.DomainCommitted), at(0))
	shaky := root(10, model.DomainTentative)
	shaky.Saves[0].Problems = []ckpt.Problem{{Severity: ckpt.Unreadable}}
	assert.Empty(t, w.Look(shaky, at(1)))
	assert.EqualValues(t, 1, w.Stats().Held)
	assert.Empty(t, w.Look(root(10, model.DomainCommitted), at(2)))
	assert.Empty(t, w.Look(shaky, at(3)), "once more, after it was well")
	assert.Equal(t, []string{"10 model rank 1: tentative"}, told(w.Look(shaky, at(4))))
	assert.Equal(t, []string{"10 model rank 1: committed 10"}, told(w.Look(root(10, model.DomainCommitted), at(5))))
}

func TestWhatIsRefusedIsToldAgain(t *testing.T) {
	w := watcher()
	obs := w.Look(root(10, model.DomainCommitted), at(0))
	w.Refused(obs[:2])
	w.Refused([]model.EpochObservation{{Save: 99}, {Save: 99, State: model.DomainWithdrawn}})
	assert.Equal(t, told(obs), append(told(w.Look(root(10, model.DomainCommitted), at(1))[:2]), told(obs)[2:]...))
	assert.Empty(t, w.Look(root(10, model.DomainCommitted), at(2)))
}

func TestSavesOfOneEpochAndOfNone(t *testing.T) {
	w := watcher()
	w.cfg.Where = "of node7"
	r := root(10, model.DomainCommitted)
	twin := root(10, model.DomainCommitted).Saves[0]
	twin.Path = "y"
	nobody := ckpt.Save{Path: "z", Domains: []ckpt.Domain{{State: model.DomainCommitted}}}
	contents := root(20, model.DomainCommitted).Saves[0]
	contents.Epoch = model.Optional[int64]{}
	for i := range contents.Domains {
		contents.Domains[i].Own = true
	}
	r.Saves = append(r.Saves, twin, nobody, contents)
	got := told(w.Look(r, at(0)))
	assert.Contains(t, got, "10 model rank 1 of node7: committed 10")
	assert.Contains(t, got, "20 model rank 1 of node7: committed 20")
	assert.Contains(t, got, "10 place of node7: tentative")
	assert.Len(t, got, 6)
	assert.EqualValues(t, 1, w.Stats().Unnamed)
}

func TestDomainsAreBounded(t *testing.T) {
	w := watcher()
	w.cfg.MaxDomains = 4
	for e := int64(10); e <= 50; e += 10 {
		w.Look(root(e, model.DomainCommitted), at(int(e)))
		assert.LessOrEqual(t, w.Len(), 8)
	}
	assert.Positive(t, w.Stats().Dropped)
}

// Of two saves of one epoch both must hold; that one of them goes is no loss of the other.
func TestACopyOfASave(t *testing.T) {
	w := watcher()
	both := root(10, model.DomainCommitted)
	twin := root(10, model.DomainTentative).Saves[0]
	twin.Path = "last"
	both.Saves = append(both.Saves, twin)
	assert.Equal(t, []string{"10 place : tentative", "10 model rank 0: committed 10"}, told(w.Look(both, at(0)))[:2])
	assert.Equal(t, []string{"10 model rank 1: committed 10", "10 place : committed 10", "10 place : reflecting"}, sorted(told(w.Look(root(10, model.DomainCommitted), at(1)))))
	assert.Equal(t, []string{"10 place : tentative", "10 model rank 1: tentative"}, told(w.Look(both, at(2))))

	old := root(10, model.DomainCommitted)
	old.Saves[0].Domains[1].Epoch = model.Some[int64](9)
	both.Saves[1] = old.Saves[0]
	obs := w.Look(both, at(3))
	assert.Equal(t, []string{"10 place : tentative", "10 model rank 1: committed 9"}, told(obs))
	assert.Equal(t, "model rank 1 holds 9", obs[0].Witness)
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// What was told before the number of ranks was known is taken back where it was told.
func TestWhatWasToldOfAnotherNumberOfRanks(t *testing.T) {
	w := watcher()
	w.Look(root(10, model.DomainCommitted), at(0))
	both := root(10, model.DomainCommitted)
	next := root(20, model.DomainCommitted).Saves[0]
	next.World, next.WorldUnknown = model.Optional[int64]{}, true
	both.Saves = append(both.Saves, next)
	for _, o := range w.Look(both, at(1)) {
		assert.Equal(t, "2 ranks", o.Generation)
	}
	both.Saves[1].World, both.Saves[1].WorldUnknown = model.Some[int64](4), false
	obs := w.Look(both, at(2))
	var back []string
	e := epoch.New(epoch.Config{})
	for i := range obs {
		if obs[i].State == model.DomainWithdrawn {
			assert.Equal(t, "2 ranks", obs[i].Generation)
			back = append(back, fmt.Sprintf("%s %s", obs[i].Domain.Kind, obs[i].Domain.ID))
		}
	}
	assert.Equal(t, []string{"model rank 0", "model rank 1", "place "}, sorted(back))
	w.Refused(obs)
	for _, o := range w.Look(both, at(3)) {
		e.Observe(&o)
	}
	assert.Equal(t, epoch.Converged, e.Judge("job", "4 ranks", 20).Verdict)
	assert.Zero(t, e.Judge("job", "2 ranks", 20).Domains)
	for i := range goneFor + 1 {
		w.Look(both, at(100*(i+1)))
	}
	assert.Equal(t, 6, w.Len(), "that it was taken back is told no longer")
}

// A save whose folder does not answer for a moment has lost nothing; where that stays so, nothing
// confirms it, and nothing says that it is gone.
func TestASaveThatCanNotBeRead(t *testing.T) {
	w := watcher()
	w.Look(root(10, model.DomainCommitted), at(0))
	stale := &ckpt.Root{Saves: []ckpt.Save{{
		Path: "x", Epoch: model.Some[int64](10), World: model.Some[int64](2), Unproven: "it can not be read",
		Problems: []ckpt.Problem{{Severity: ckpt.Unreadable}},
	}}}
	assert.Empty(t, w.Look(stale, at(1)))
	assert.EqualValues(t, 3, w.Stats().Held)
	assert.Empty(t, w.Look(root(10, model.DomainCommitted), at(2)))
	assert.Empty(t, w.Look(stale, at(3)))
	assert.Equal(t, []string{"10 place : tentative", "10 model rank 0: tentative", "10 model rank 1: tentative"}, told(w.Look(stale, at(4))))
	assert.Empty(t, w.Look(stale, at(5)))
	stale.Saves[0].Epoch = model.Optional[int64]{} // nor what it is called
	assert.Empty(t, w.Look(stale, at(6)))
	assert.EqualValues(t, 1, w.Stats().Partial)
	assert.Len(t, w.Look(root(10, model.DomainCommitted), at(7)), 4)
}

// What the last look did not see is not told again on a heartbeat, and that there is more is said.
func TestAHeartbeatOfWhatWasSeen(t *testing.T) {
	w := watcher()
	one, two := root(10, model.DomainCommitted), root(20, model.DomainCommitted)
	both := &ckpt.Root{Saves: append(slices.Clone(one.Saves), two.Saves...)}
	for _, o := range w.Look(both, at(0)) {
		assert.False(t, o.Blind)
	}
	unreadable := []ckpt.Problem{{Check: ckpt.CheckInput, Severity: ckpt.Unreadable}}
	one.Problems = unreadable
	obs := w.Look(one, at(60))
	assert.Equal(t, []string{"10 place : reflecting", "10 model rank 0: committed 10", "10 model rank 1: committed 10", "10 place : committed 10"}, told(obs))
	for _, o := range obs {
		assert.True(t, o.Blind)
	}
	assert.Empty(t, w.Look(&ckpt.Root{Problems: unreadable}, at(120)))
	obs = w.Look(both, at(180))
	require.Len(t, obs, 8)
	assert.False(t, obs[0].Blind)

	w.Look(&ckpt.Root{Saves: two.Saves}, at(181)) // 10 is gone
	assert.Empty(t, w.Look(&ckpt.Root{Problems: unreadable}, at(241)), "nor is it known that it is gone still")
	assert.Len(t, w.Look(&ckpt.Root{Saves: two.Saves}, at(301)), 4+3)
}

// What went with a change of the number of ranks was no part of the save: it is not lost.
func TestWhatVanishesWithAnotherNumberOfRanks(t *testing.T) {
	w, e := watcher(), epoch.New(epoch.Config{})
	take := func(obs []model.EpochObservation) {
		for i := range obs {
			e.Observe(&obs[i])
		}
	}
	take(w.Look(root(10, model.DomainCommitted), at(0)))
	one := root(10, model.DomainCommitted)
	one.Saves[0].World, one.Saves[0].Domains = model.Some[int64](1), one.Saves[0].Domains[:1]
	take(w.Look(one, at(1)))
	assert.Equal(t, epoch.Unknown, e.Judge("job", "2 ranks", 10).Verdict)
	assert.Equal(t, epoch.Converged, e.Judge("job", "1 ranks", 10).Verdict)
	assert.Equal(t, 2+3, w.Len())
}

// When a save was begun is told with its place, and decides nothing.
func TestTheFirstWriteIsTold(t *testing.T) {
	w := watcher()
	r := root(10, model.DomainCommitted)
	r.Saves[0].FirstWrite = at(-60)
	again := r.Saves[0] // a copy of it that is older
	again.Path, again.FirstWrite = "y", at(-90)
	r.Saves = append(r.Saves, again)
	for _, o := range w.Look(r, at(0)) {
		want := int64(0)
		if o.Domain.Kind == model.DomainPlace {
			want = at(-90).UnixNano()
		}
		assert.Equal(t, want, o.FirstWrite, o.Domain)
	}
	r.Saves[1].FirstWrite = at(-80)
	assert.Empty(t, w.Look(r, at(1)), "it is no change")
	for _, o := range w.Look(r, at(60)) {
		if o.Domain.Kind == model.DomainPlace {
			assert.Equal(t, at(-80).UnixNano(), o.FirstWrite)
		}
	}
	r.Saves[0].FirstWrite, r.Saves[1].FirstWrite = time.Unix(-7, 0), time.Time{}
	for _, o := range w.Look(r, at(120)) {
		assert.Zero(t, o.FirstWrite, "before 1970")
	}
}

// Domains are named by files: names are cut to what others take, and all are bounded in bytes.
func TestWatcher_LongNames_StayWithinBytes(t *testing.T) {
	w := watcher()
	for save := range int64(60) {
		of := root(save, model.DomainCommitted)
		of.Saves[0].World = model.Some(2 + save%3)
		for i := range 100 {
			of.Saves[0].Domains = append(of.Saves[0].Domains, ckpt.Domain{
				Domain: model.Domain{Kind: model.DomainOptimizer, ID: strings.Repeat("x", 3000) + fmt.Sprint(i)}, State: model.DomainCommitted,
				Epoch: model.Some(save), Witness: strings.Repeat("w", 3000),
			})
		}
		for _, o := range w.Look(of, at(int(save)*20)) {
			require.LessOrEqual(t, len(o.Domain.ID), cut.MaxName)
			require.LessOrEqual(t, len(o.Witness), cut.MaxName)
		}
		bytes := 0
		for _, s := range w.domains {
			bytes += s.size()
		}
		for _, s := range w.withdrawn {
			bytes += s.size()
		}
		require.Equal(t, bytes, w.bytes)
		require.LessOrEqual(t, w.bytes, 2*w.cfg.MaxDomains*bytesOfDomain)
	}
	assert.Positive(t, w.Stats().Dropped)
}
