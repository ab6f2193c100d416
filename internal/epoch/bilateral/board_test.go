// SPDX-License-Identifier: Apache-2.0

package bilateral

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

var limits = Config{MaxJobs: 4, MaxDomains: 40, Silent: time.Hour}

// speaker is a domain that tells what it is made to.
type speaker struct {
	t     *testing.T
	board *Board
	tell  Tell
}

func speakers(t *testing.T, b *Board, n int) (list []*speaker) {
	t.Helper()
	for i := range n {
		list = append(list, &speaker{t, b, Tell{Job: "job", Domain: fmt.Sprintf("rank %d", i), Domains: n, Life: fmt.Sprintf("%x", 0xa0+i)}})
	}
	return list
}

func (s *speaker) says(session string, slots ...Slot) Answer {
	s.t.Helper()
	s.tell.Sequence++
	s.tell.Session, s.tell.Slots = session, slots
	a, err := s.board.Tell(&s.tell, Until{}, time.Now())
	require.NoError(s.t, err)
	return a
}

func slot(epoch int64, session string, state State) Slot {
	return Slot{Attempt{epoch, session}, state}
}

func TestSession(t *testing.T) {
	b := New(limits)
	all := speakers(t, b, 3)
	first := all[0].says("")
	first.rest = 0
	assert.Equal(t, Answer{Domains: 3, Heard: 1}, first)
	assert.Empty(t, all[1].says("").Session, "one is not heard")
	session := all[2].says("").Session
	require.NotEmpty(t, session)
	assert.Equal(t, 1, all[0].says(session).Joined)
	assert.Equal(t, 1, all[0].says(session).Joined, "told twice")
	assert.Equal(t, 2, all[1].says(session).Joined)
	a := all[2].says(session)
	assert.Equal(t, 3, a.Joined)
	assert.False(t, a.Recoverable.OK, "nobody holds anything")

	t.Run("a life more is another session, of which nobody is", func(t *testing.T) {
		all[1].tell.Life, all[1].tell.Sequence = "bb", 0
		a := all[1].says("")
		assert.NotEmpty(t, a.Session)
		assert.NotEqual(t, session, a.Session)
		assert.Zero(t, a.Joined)
	})
	t.Run("the life before is not heard", func(t *testing.T) {
		late := all[1].tell
		late.Life, late.Sequence = "a1", 99
		_, err := b.Tell(&late, Until{}, time.Now())
		require.ErrorIs(t, err, ErrConflict)
		assert.ErrorContains(t, err, `tell job "job": conflict: check life of "rank 1"`)
	})
	t.Run("another board names the session alike", func(t *testing.T) {
		other := New(limits)
		for _, s := range speakers(t, other, 3) {
			s.says("")
			if s.tell.Domain == "rank 2" {
				assert.Equal(t, session, s.says("").Session)
			}
		}
	})
}

func TestRecoverable(t *testing.T) {
	for name, c := range map[string]struct {
		slots             [3][]Slot
		recoverable, lost model.Optional[Attempt]
	}{
		"nothing": {},
		"one that all hold": {
			slots:       [3][]Slot{{slot(1, "e", Tentative)}, {slot(1, "e", Committed)}, {slot(1, "e", Reflecting)}},
			recoverable: model.Some(Attempt{1, "e"}),
		},
		"the newest of those": {
			slots: [3][]Slot{
				{slot(1, "e", Committed), slot(2, "f", Tentative), slot(3, "f", Tentative)},
				{slot(1, "e", Committed), slot(2, "f", Tentative)},
				{slot(1, "e", Committed), slot(2, "f", Tentative)},
			},
			recoverable: model.Some(Attempt{2, "f"}),
		},
		"parts of two attempts are no save": {
			slots:       [3][]Slot{{slot(1, "e", Committed), slot(2, "f", Tentative)}, {slot(1, "e", Committed), slot(2, "aa", Tentative)}, {slot(1, "e", Committed), slot(2, "f", Tentative)}},
			recoverable: model.Some(Attempt{1, "e"}),
		},
		"dropped for the newer by some": {
			slots:       [3][]Slot{{slot(2, "e", Committed)}, {slot(1, "e", Committed), slot(2, "e", Reflecting)}, {slot(2, "e", Committed)}},
			recoverable: model.Some(Attempt{2, "e"}),
		},
		"a part was lost": {
			slots: [3][]Slot{{slot(2, "e", Committed)}, {}, {slot(2, "e", Committed)}},
			lost:  model.Some(Attempt{2, "e"}),
		},
		"a part was lost, and all hold the one before": {
			slots:       [3][]Slot{{slot(1, "e", Committed), slot(2, "e", Reflecting)}, {slot(1, "e", Committed)}, {slot(1, "e", Committed), slot(2, "e", Tentative)}},
			recoverable: model.Some(Attempt{1, "e"}), lost: model.Some(Attempt{2, "e"}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := speakers(t, New(limits), 3)
			var a Answer
			session := ""
			for range 2 {
				for i, s := range all {
					assert.False(t, a.Recoverable.OK || a.Lost.OK, "not all take part")
					a = s.says(session, c.slots[i]...)
				}
				session = a.Session
			}
			assert.Equal(t, c.recoverable, a.Recoverable)
			assert.Equal(t, c.lost, a.Lost)
		})
	}
}

func TestCount(t *testing.T) {
	all := speakers(t, New(limits), 2)
	all[0].says("", slot(5, "e", Committed), slot(6, "f", Tentative))
	a := all[1].says("", slot(5, "e", Reflecting), slot(6, "aa", Tentative))
	assert.Equal(t, []Count{{Attempt{5, "e"}, 2, 2, 1}, {Attempt{6, "aa"}, 1, 0, 0}}, a.Saves)

	stale := all[0].tell
	all[0].says("", slot(6, "aa", Committed))
	stale.Slots = []Slot{slot(5, "e", Tentative)}
	a, err := all[0].board.Tell(&stale, Until{}, time.Now())
	require.NoError(t, err)
	assert.Equal(t, []Count{{Attempt{5, "e"}, 1, 1, 0}}, a.Saves, "what was on its way for longer is not taken")
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(limits)
		all := speakers(t, b, 3)
		var done sync.WaitGroup
		for i, s := range all {
			done.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				s.tell.Sequence++
				a, err := b.Wait(t.Context(), &s.tell, Until{})
				assert.NoError(t, err)
				s.tell.Sequence++
				s.tell.Session = a.Session
				a, err = b.Wait(t.Context(), &s.tell, Until{})
				assert.NoError(t, err)
				assert.Equal(t, 3, a.Joined)
				s.tell.Sequence++
				s.tell.Slots = []Slot{slot(1, "e", Tentative)}
				a, err = b.Wait(t.Context(), &s.tell, Until{State: Tentative, Epoch: 1})
				assert.NoError(t, err)
				assert.Equal(t, 3, a.Saves[0].Tentative)
			})
		}
		done.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		all[0].tell.Sequence++
		a, err := b.Wait(ctx, &all[0].tell, Until{State: Reflecting, Epoch: 1, Missing: true})
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(begin))
		assert.Equal(t, []string{"rank 0", "rank 1", "rank 2"}, a.Missing)
		_, err = b.Wait(ctx, &all[0].tell, Until{State: Reflecting, Epoch: 7})
		require.NoError(t, err, "nobody waits for what it does not hold")
	})
}

func TestMissing(t *testing.T) {
	b := New(limits)
	all := speakers(t, b, 30)
	all[3].says("")
	all[3].tell.Sequence++
	a, err := b.Tell(&all[3].tell, Until{Missing: true}, time.Now())
	require.NoError(t, err)
	assert.Equal(t, []any{1, 30, []string{"rank 3"}}, []any{a.Heard, a.MissingCount, a.Missing}, "29 are not known by name")
	for _, s := range all[:29] {
		s.says("", slot(1, "e", Tentative))
	}
	all[29].says("")
	a, err = b.Tell(&all[3].tell, Until{State: Tentative, Epoch: 1, Missing: true}, time.Now())
	require.NoError(t, err)
	assert.Equal(t, []any{1, []string{"rank 29"}}, []any{a.MissingCount, a.Missing})
	a, err = b.Tell(&all[3].tell, Until{State: Reflecting, Epoch: 1, Missing: true}, time.Now())
	require.NoError(t, err)
	assert.Equal(t, []int{30, maxMissing}, []int{a.MissingCount, len(a.Missing)})
}

func TestLimits(t *testing.T) {
	b := New(limits)
	tell := func(job, domain string, domains int, slots ...Slot) error {
		_, err := b.Tell(&Tell{Job: job, Domain: domain, Domains: domains, Life: "a", Sequence: 1, Slots: slots}, Until{}, time.Now())
		return err
	}
	for i := range 4 {
		for k := range 10 {
			require.NoError(t, tell(fmt.Sprint("job ", i), fmt.Sprint(k), 10+i))
		}
	}
	require.ErrorIs(t, tell("job 0", "11", 10), ErrConflict)
	require.ErrorIs(t, tell("job 0", "1", 9), ErrFull)
	require.NoError(t, tell("job 0", "1", 10), "one that is known")
	b.cfg.MaxDomains = 1000
	require.ErrorIs(t, tell("job 9", "1", 9), ErrFull)
	require.ErrorIs(t, tell("job 0", "11", 10), ErrConflict)
	assert.Equal(t, Stats{Jobs: 4, Domains: 40}, b.Stats())

	b.Forget(time.Now().Add(time.Hour))
	assert.Equal(t, Stats{Forgotten: 4}, b.Stats())
}

// Who is over makes room: a job of another name, or a rank, does not wait for a day.
func TestWhoIsSilentMakesRoom(t *testing.T) {
	b, now := New(limits), time.Now()
	tell := func(job, domain string, domains int, slots ...Slot) error {
		_, err := b.Tell(&Tell{Job: job, Domain: domain, Domains: domains, Life: "a", Sequence: now.UnixNano(), Slots: slots}, Until{}, now)
		return err
	}
	for i := range 4 {
		now = now.Add(time.Second)
		for k := range 10 {
			require.NoError(t, tell(fmt.Sprint("job ", i), fmt.Sprint(k), 10))
		}
	}
	now = now.Add(idle - 2*time.Second)
	require.NoError(t, tell("job 0", "0", 10))
	require.NoError(t, tell("job 9", "0", 10), "instead of job 1, which is silent for longest")
	assert.Equal(t, Stats{Forgotten: 1, Jobs: 4, Domains: 31}, b.Stats())
	assert.False(t, b.jobs.Has(key{"job 1", 10}))
	require.ErrorIs(t, tell("job 8", "0", 10), ErrFull, "the others were heard a moment ago")
	require.ErrorIs(t, tell("job 3", "new", 10), ErrConflict)

	now = now.Add(idle)
	require.NoError(t, tell("job 3", "0", 10, slot(1, "e", Tentative)))
	require.NoError(t, tell("job 3", "new", 10, slot(1, "e", Tentative)), "instead of rank 1")
	j, _ := b.jobs.Peek(key{"job 3", 10})
	assert.False(t, j.members.Has("1"))
	assert.Equal(t, 10, j.members.Len())
	assert.EqualValues(t, 1, b.Stats().Left)
	a, err := b.Tell(&Tell{Job: "job 3", Domain: "0", Domains: 10, Life: "a", Sequence: 1}, Until{}, now)
	require.NoError(t, err)
	other := New(limits)
	for name, m := range j.members.All() {
		a2, err := other.Tell(&Tell{Job: "job 3", Domain: name, Domains: 10, Life: m.life, Sequence: 1}, Until{}, now)
		require.NoError(t, err)
		if o, _ := other.jobs.Peek(key{"job 3", 10}); o.members.Len() == 10 {
			assert.Equal(t, a2.Session, a.Session, "of those that are there now")
		}
	}
}

func TestWhoMakesRoomIsWithdrawn(t *testing.T) {
	b, now := New(limits), time.Now()
	tell := func(domain string, slots ...Slot) {
		_, err := b.Tell(&Tell{Job: "job", Domain: domain, Domains: 2, Life: "a", Sequence: now.UnixNano(), Slots: slots}, Until{}, now)
		require.NoError(t, err)
	}
	tell("0", slot(1, "e", Committed))
	tell("1", slot(1, "e", Committed))
	require.Len(t, changes(b, false), 2)
	now = now.Add(idle)
	tell("0", slot(1, "e", Committed))
	tell("2")
	list := changes(b, false)
	require.Len(t, list, 2)
	assert.Equal(t, []any{"2", model.DomainAbsent}, []any{list[0].Domain, list[0].State})
	assert.Equal(t, []any{"1", model.DomainWithdrawn}, []any{list[1].Domain, list[1].State})
	assert.Empty(t, changes(b, false))
}

// Who made room and comes back at once is told of as it is, whatever was known of it.
func TestWhoMakesRoomAndComesBack(t *testing.T) {
	b, now := New(limits), time.Now()
	tell := func(domain string, slots ...Slot) {
		_, err := b.Tell(&Tell{Job: "job", Domain: domain, Domains: 2, Life: "a", Sequence: now.UnixNano(), Slots: slots}, Until{}, now)
		require.NoError(t, err)
	}
	tell("node-a", slot(1, "e", Committed))
	tell("node-b", slot(1, "e", Committed))
	changes(b, false)
	now = now.Add(idle)
	tell("node-c", slot(1, "e", Committed)) // instead of node-a
	tell("node-a", slot(1, "e", Committed)) // instead of node-b
	last := map[string]Change{}
	for _, c := range append(changes(b, false), changes(b, true)...) {
		if c.Revision >= last[c.Domain].Revision {
			last[c.Domain] = c
		}
	}
	require.Len(t, last, 3)
	assert.Equal(t, model.DomainCommitted, last["node-c"].State)
	assert.Equal(t, model.DomainCommitted, last["node-a"].State)
	assert.Equal(t, model.DomainWithdrawn, last["node-b"].State)
}

// What not all of a forgotten job held nobody will tell of any more: it is taken back. What all held stays.
func TestWhatIsForgottenIsWithdrawn(t *testing.T) {
	b, now := New(limits), time.Now()
	for i, slots := range [][]Slot{{slot(1, "e", Committed), slot(2, "e", Tentative)}, {slot(1, "e", Committed)}} {
		_, err := b.Tell(&Tell{Job: "job", Domain: fmt.Sprint(i), Domains: 2, Life: "a", Sequence: 1, Slots: slots}, Until{}, now)
		require.NoError(t, err)
	}
	require.Len(t, changes(b, false), 4)
	b.Forget(now.Add(limits.Silent))
	list := changes(b, false)
	require.Len(t, list, 2)
	for _, c := range list {
		assert.Equal(t, []any{int64(2), model.DomainWithdrawn}, []any{c.Epoch, c.State})
	}
	assert.Empty(t, changes(b, true))
}

func TestWhatIsForgottenIsBounded(t *testing.T) {
	b, now := New(limits), time.Now()
	for i := range maxGone + 3 {
		_, err := b.Tell(&Tell{Job: fmt.Sprint(i), Domain: "0", Domains: 2, Life: "a", Sequence: 1, Slots: []Slot{slot(1, "e", Tentative)}}, Until{}, now)
		require.NoError(t, err)
		b.pass = nil
		b.changes(key{fmt.Sprint(i), 2}, false)
		now = now.Add(limits.Silent)
		b.Forget(now)
	}
	assert.EqualValues(t, 3, b.Stats().Unsaid)
	assert.Len(t, changes(b, false), maxGone)
}

// Where a whole job begins, each domain is told of the session once and not once for each that begins.
func TestSessionsComeToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const domains = 40
		b := New(limits)
		all := speakers(t, b, domains)
		for _, s := range all {
			s.says("")
		}
		began := time.Now()
		var met sync.WaitGroup
		var answers atomic.Int64
		for i, s := range all {
			met.Go(func() {
				time.Sleep(time.Duration(i) * restFor / 2)
				s.tell.Life, s.tell.Sequence, s.tell.Session = fmt.Sprintf("b%x", i), 0, ""
				for {
					s.tell.Sequence++
					a, err := b.Wait(t.Context(), &s.tell, Until{})
					answers.Add(1)
					if !assert.NoError(t, err) || a.Joined == domains {
						return
					}
					s.tell.Session = a.Session
				}
			})
		}
		met.Wait()
		assert.LessOrEqual(t, answers.Load(), int64(2*domains))
		assert.Less(t, time.Since(began), domains*restFor)
	})
}

func TestAttemptsAreBounded(t *testing.T) {
	all := speakers(t, New(limits), 10)
	wild := func(i int) (slots []Slot) {
		for e := range int64(MaxSlots) {
			slots = append(slots, slot(e, fmt.Sprintf("%x", i), Tentative))
		}
		return slots
	}
	for i := range maxAttempts / MaxSlots {
		all[i].says("", wild(i)...)
	}
	s := all[9]
	s.tell.Sequence, s.tell.Slots = 1, wild(9)
	_, err := s.board.Tell(&s.tell, Until{}, time.Now())
	require.ErrorIs(t, err, ErrFull)
	all[0].says("", wild(77)...) // those it held go
	j, _ := s.board.jobs.Peek(key{"job", 10})
	assert.Len(t, j.far, maxAttempts)
}

func TestFormerLivesAreBounded(t *testing.T) {
	b := New(limits)
	s := speakers(t, b, 1)[0]
	for i := range 100 {
		s.tell.Life = fmt.Sprintf("%x", i)
		s.says("")
	}
	j, _ := b.jobs.Peek(key{"job", 1})
	m, _ := j.members.Peek("rank 0")
	assert.Len(t, m.former, maxFormer)
}

func TestCheck(t *testing.T) {
	right := Tell{Job: "j", Domain: "d", Domains: 2, Life: "a", Sequence: 1, Session: "b", Slots: []Slot{slot(1, "c", Tentative)}}
	require.NoError(t, right.Check())
	for want, change := range map[string]func(*Tell){
		`check job: got ""; want 1 to 128 bytes of text`:                  func(t *Tell) { t.Job = "" },
		`check domain: got "a\n"`:                                         func(t *Tell) { t.Domain = "a\n" },
		"check domain: got \"\\xff\"":                                     func(t *Tell) { t.Domain = "\xff" },
		`check job: got "` + strings.Repeat("x", 40) + `"; want 1 to 128`: func(t *Tell) { t.Job = strings.Repeat("x", 129) },
		"check domains: got 0; want 1 to 131072":                          func(t *Tell) { t.Domains = 0 },
		"check domains: got 131073":                                       func(t *Tell) { t.Domains = MaxDomains + 1 },
		`check life: got "G"; want 1 to 64 hexadecimal digits`:            func(t *Tell) { t.Life = "G" },
		"check sequence: got 0; want 1 or more":                           func(t *Tell) { t.Sequence = 0 },
		`check session: got "x"`:                                          func(t *Tell) { t.Session = "x" },
		"check slots: got 9; want at most 8":                              func(t *Tell) { t.Slots = make([]Slot, 9) },
		"check slots: 0: got epoch -1; want 0 or more":                    func(t *Tell) { t.Slots[0].Epoch = -1 },
		`check slots: 0: got attempt ""; want 1 to 64 hexadecimal digits`: func(t *Tell) { t.Slots[0].Session = "" },
		"check slots: 0: got state 4; want 1 to 3":                        func(t *Tell) { t.Slots[0].State = 4 },
		"check slots: 1: got epoch 1 after 1; want them ascending":        func(t *Tell) { t.Slots = append(t.Slots, t.Slots[0]) },
	} {
		bad := right
		bad.Slots = append([]Slot(nil), right.Slots...)
		change(&bad)
		assert.ErrorContains(t, bad.Check(), want)
		_, err := New(limits).Tell(&bad, Until{}, time.Now())
		assert.Error(t, err)
	}
}

func changes(b *Board, all bool) (list []Change) {
	b.Changes(all, func(of []Change) bool {
		list = append(list, of...)
		return true
	})
	return list
}

func TestChanges(t *testing.T) {
	b := New(limits)
	s := speakers(t, b, 1)[0]
	type of struct {
		epoch int64
		state model.DomainState
	}
	last := int64(0)
	said := func(all bool) (list []of) {
		for _, c := range changes(b, all) {
			assert.Equal(t, []any{"job", "rank 0", 1}, []any{c.Job, c.Domain, c.Domains})
			if !all {
				assert.Greater(t, c.Revision, last)
				last = c.Revision
			}
			list = append(list, of{c.Epoch, c.State})
		}
		return list
	}
	s.says("", slot(1, "e", Committed), slot(2, "e", Tentative))
	assert.Equal(t, []of{{1, model.DomainCommitted}, {2, model.DomainTentative}}, said(false))
	assert.Empty(t, said(false))
	assert.Equal(t, []of{{1, model.DomainCommitted}, {2, model.DomainTentative}}, said(true))
	s.says("", slot(1, "e", Committed))
	assert.Equal(t, []of{{2, model.DomainWithdrawn}}, said(false), "it was never committed")
	s.says("", slot(1, "e", Committed), slot(2, "f", Reflecting))
	assert.Equal(t, []of{{2, model.DomainReflecting}}, said(false))
	s.says("", slot(2, "f", Committed))
	assert.Equal(t, []of{{2, model.DomainCommitted}, {1, model.DomainAbsent}}, said(false), "dropped for the newer")
	assert.Equal(t, []of{{2, model.DomainCommitted}}, said(true))
}

func TestChangesOfOneThatOthersAreAheadOf(t *testing.T) {
	b := New(limits)
	all := speakers(t, b, 3)
	all[2].says("", slot(1, "e", Committed))
	all[1].says("", slot(1, "e", Committed))
	all[0].says("", slot(1, "e", Committed))
	changes(b, false)
	said := func() map[string]Change {
		of := map[string]Change{}
		for _, c := range changes(b, false) {
			of[fmt.Sprint(c.Domain, ", ", c.Epoch)] = Change{State: c.State, Held: c.Held}
		}
		return of
	}
	all[0].says("", slot(1, "e", Committed), slot(2, "f", Tentative))
	absent := Change{State: model.DomainAbsent}
	assert.Equal(t, map[string]Change{"rank 0, 2": {State: model.DomainTentative, Held: true}, "rank 1, 2": absent, "rank 2, 2": absent}, said())
	all[1].says("", slot(1, "e", Committed), slot(2, "f", Tentative))
	assert.Equal(t, map[string]Change{"rank 1, 2": {State: model.DomainTentative, Held: true}}, said())
	all[0].says("", slot(1, "e", Committed))
	all[1].says("", slot(1, "e", Committed))
	withdrawn := Change{State: model.DomainWithdrawn}
	assert.Equal(t, map[string]Change{"rank 0, 2": withdrawn, "rank 1, 2": withdrawn, "rank 2, 2": withdrawn}, said())
	for _, s := range all {
		s.says("", slot(3, "f", Committed))
	}
	dropped := Change{State: model.DomainAbsent, Held: true}
	committed := Change{State: model.DomainCommitted, Held: true}
	assert.Equal(t, map[string]Change{
		"rank 0, 1": dropped, "rank 1, 1": dropped, "rank 2, 1": dropped,
		"rank 0, 3": committed, "rank 1, 3": committed, "rank 2, 3": committed,
	}, said())
}

// What nobody takes is not lost, and what is told of one job waits for no other.
func TestChangesThatAreNotTaken(t *testing.T) {
	b := New(limits)
	for _, job := range []string{"a", "b"} {
		_, err := b.Tell(&Tell{Job: job, Domain: "0", Domains: 1, Life: "a", Sequence: 1, Slots: []Slot{slot(1, "e", Tentative)}}, Until{}, time.Now())
		require.NoError(t, err)
	}
	var jobs []string
	assert.False(t, b.Changes(false, func(of []Change) bool { jobs = append(jobs, of[0].Job); return false }))
	assert.True(t, b.Changes(false, func(of []Change) bool { jobs = append(jobs, of[0].Job); return true }))
	assert.Equal(t, []string{"a", "b"}, jobs)
}

// Where now and then one is not taken, all come to be told, and the last as often as the first.
func TestChangesAreFair(t *testing.T) {
	b := New(Config{MaxJobs: 10, MaxDomains: 10, Silent: time.Hour})
	for job := range 10 {
		_, err := b.Tell(&Tell{Job: fmt.Sprint(job), Domain: "0", Domains: 1, Life: "a", Sequence: 1, Slots: []Slot{slot(1, "e", Tentative)}}, Until{}, time.Now())
		require.NoError(t, err)
	}
	told, calls := map[string]int{}, 0
	for range 100 {
		b.Changes(true, func(of []Change) bool {
			told[of[0].Job]++
			calls++
			return calls%4 != 0
		})
	}
	require.Len(t, told, 10)
	for job, n := range told {
		assert.InDelta(t, calls/10, n, 2, job)
	}
}

// A pass over what has changed that was broken off is none over all.
func TestChangesOfAllAfterSome(t *testing.T) {
	b := New(limits)
	s := speakers(t, b, 1)[0]
	s.says("", slot(1, "e", Tentative))
	require.False(t, b.Changes(false, func([]Change) bool { return false }))
	assert.Len(t, changes(b, true), 1)
}

// What one has committed all recover, also those that were not told of it any more.
func TestChangesOfWhatOneHasCommitted(t *testing.T) {
	b := New(limits)
	all := speakers(t, b, 3)
	for _, s := range all {
		s.says("", slot(1, "e", Committed))
	}
	changes(b, false)
	for _, s := range all {
		s.says("", slot(1, "e", Committed), slot(2, "f", Reflecting))
	}
	for _, c := range changes(b, false) {
		assert.Equal(t, []any{int64(2), model.DomainReflecting}, []any{c.Epoch, c.State})
	}
	all[1].says("", slot(2, "f", Committed))
	by := map[int64][]model.DomainState{}
	for _, c := range changes(b, false) {
		by[c.Epoch] = append(by[c.Epoch], c.State)
	}
	committed, absent := model.DomainCommitted, model.DomainAbsent
	assert.Equal(t, map[int64][]model.DomainState{1: {absent, absent, absent}, 2: {committed, committed, committed}}, by)
}

// Parts of two attempts at one epoch are no parts of one save.
func TestChangesOfTwoAttempts(t *testing.T) {
	b := New(limits)
	all := speakers(t, b, 3)
	all[0].says("", slot(1, "e", Committed))
	all[1].says("", slot(1, "f", Committed))
	all[2].says("", slot(1, "e", Tentative))
	states := map[string]model.DomainState{}
	for _, c := range changes(b, false) {
		states[c.Domain] = c.State
	}
	assert.Equal(t, map[string]model.DomainState{"rank 0": model.DomainCommitted, "rank 1": model.DomainAbsent, "rank 2": model.DomainTentative}, states)
}

// Of a job that goes on with another number of domains, what it had not committed is expected no more.
func TestChangesOfAnotherNumberOfDomains(t *testing.T) {
	b := New(limits)
	before := speakers(t, b, 2)
	before[0].says("", slot(1, "e", Committed), slot(2, "e", Tentative))
	before[1].says("", slot(1, "e", Committed))
	require.Len(t, changes(b, false), 4)
	after := speakers(t, b, 3)
	for _, s := range after {
		s.says("")
	}
	session := after[0].says("").Session
	for _, s := range after {
		assert.Empty(t, changes(b, false), "not all have met")
		s.says(session)
	}
	assert.Empty(t, changes(b, false), "the job before spoke a moment ago")
	b.Forget(time.Now().Add(lively))
	list := changes(b, false)
	require.Len(t, list, 2)
	for _, c := range list {
		assert.Equal(t, []any{2, int64(2), model.DomainWithdrawn}, []any{c.Domains, c.Epoch, c.State})
	}
	before[0].says("", slot(1, "e", Committed), slot(2, "e", Tentative))
	assert.Len(t, changes(b, false), 2, "it lives all the same")
}

func TestJobs(t *testing.T) {
	b := New(limits)
	speakers(t, b, 2)[0].says("", slot(3, "e", Reflecting))
	speakers(t, b, 1)[0].says("")
	jobs := b.Jobs()
	require.Len(t, jobs, 2)
	assert.Equal(t, []any{"job", 1, 1, 2, 1}, []any{jobs[0].Name, jobs[0].Domains, jobs[0].Heard, jobs[1].Domains, jobs[1].Heard})
	assert.Equal(t, []Count{{Attempt{3, "e"}, 1, 1, 0}}, jobs[1].Saves)
}

func TestParseState(t *testing.T) {
	for s := Tentative; s <= Committed; s++ {
		got, err := ParseState(string(s.Model()))
		require.NoError(t, err)
		assert.Equal(t, s, got)
	}
	_, err := ParseState("")
	assert.ErrorContains(t, err, `parse state: got ""; want tentative`)
}

// A list of missing domains is kept for a second only: each attempt has one.
func TestJob_ListsOfMissingDomains_AreDroppedAfterASecond(t *testing.T) {
	j := newJob(key{"job", 2})
	now := time.Unix(1_700_000_000, 0)
	j.lacking(need{attempt: Attempt{Epoch: 1}, state: Tentative}, now)
	j.lacking(need{attempt: Attempt{Epoch: 2}, state: Tentative}, now.Add(missingStaysIn-1))
	assert.Equal(t, 2, j.missing.Len())
	j.lacking(need{attempt: Attempt{Epoch: 3}, state: Tentative}, now.Add(missingStaysIn))
	assert.Equal(t, 2, j.missing.Len(), "those of epochs 2 and 3")
}
