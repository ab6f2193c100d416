// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// bed gathers dumps of a job, by times in seconds.
type bed struct{ *Incidents }

func newBed(change func(*IncidentConfig)) bed {
	cfg := IncidentConfig{Wait: 10 * time.Second, MaxWait: time.Minute, Window: 2 * time.Minute, MaxRanks: 100, MaxJobs: 4}
	if change != nil {
		change(&cfg)
	}
	return bed{NewIncidents(cfg)}
}

// stateOf is what a rank of a job of four says; created tells processes apart.
func stateOf(rank, created int64) *model.RankState {
	return &model.RankState{
		Rank: model.Rank{Rank: rank}, LastEnqueue: created,
		Comms: []model.CommState{{Comm: model.Comm{ID: "0", Name: worldGroup}, Members: []int64{0, 1, 2, 3}}},
		Ops:   []model.StateOp{{Kind: model.KindCollective, Name: model.AllReduce, Seq: 7, Created: created}},
	}
}

func (b bed) add(now float64, rank int64) {
	b.Add(at(now), Dump{Job: "j", Source: "f" + string(rune('0'+rank)), Rank: rank, Time: at(now), State: stateOf(rank, 100+rank)})
}

func ranksOf(in Incident) (states []int64, absent map[int64]model.AbsenceReason) {
	for i := range in.States {
		states = append(states, in.States[i].Rank.Rank)
	}
	absent = map[int64]model.AbsenceReason{}
	for _, a := range in.Absent {
		absent[a.Rank] = a.Reason
	}
	return states, absent
}

func TestIncidentEndsWhenAllHaveCome(t *testing.T) {
	b := newBed(func(c *IncidentConfig) { c.AllRanks = true })
	for rank := range int64(3) {
		b.add(float64(rank), rank)
		assert.Empty(t, b.Due(at(float64(rank))))
	}
	b.add(3, 3)
	got := b.Due(at(3))
	assert.Len(t, got, 1)
	states, absent := ranksOf(got[0])
	assert.Equal(t, []int64{0, 1, 2, 3}, states)
	assert.Empty(t, absent)
	assert.Equal(t, model.Some(int64(4)), got[0].States[0].Rank.WorldSize)
	assert.Equal(t, at(0), got[0].Began)
	assert.Empty(t, b.Due(at(100)), "told once")
}

func TestWhoDoesNotComeIsAbsent(t *testing.T) {
	writing := true
	b := newBed(func(c *IncidentConfig) {
		c.AllRanks = true
		c.Known = func(_ string, rank int64) (time.Time, bool, bool) {
			switch rank {
			case 1:
				return at(2), writing, true
			case 2:
				return at(-500), false, true
			}
			return time.Time{}, false, false
		}
	})
	b.add(0, 0)
	assert.Empty(t, b.Due(at(9.9)))
	got := b.Due(at(10))
	assert.Len(t, got, 1)
	states, absent := ranksOf(got[0])
	assert.Equal(t, []int64{0}, states)
	assert.Equal(t, map[int64]model.AbsenceReason{1: model.AbsentLate, 2: model.AbsentStale, 3: model.AbsentMissing}, absent)

	b.add(12, 1)
	got = b.Due(at(22))
	states, absent = ranksOf(got[0])
	assert.Equal(t, []int64{1}, states, "late ones are told of, too")
	assert.NotContains(t, absent, int64(0), "was told of")
	assert.Contains(t, absent, int64(3))

	writing = false
	b.add(1000, 0) // the next incident
	_, absent = ranksOf(b.Due(at(1010))[0])
	assert.Equal(t, model.AbsentStale, absent[1], "its dump is of the incident before")
}

// Who does not expect all ranks knows of nobody that is missing.
func TestNobodyIsAbsentWhoIsNotExpected(t *testing.T) {
	b := newBed(nil)
	b.add(0, 0)
	got := b.Due(at(10))
	assert.Len(t, got, 1)
	assert.Empty(t, got[0].Absent)

	b = newBed(func(c *IncidentConfig) { c.Ranks = []int64{0, 1} })
	b.add(0, 0)
	_, absent := ranksOf(b.Due(at(10))[0])
	assert.Equal(t, map[int64]model.AbsenceReason{1: model.AbsentMissing}, absent)
}

// Dumps that come one after the other for long do not keep the first ones back for ever.
func TestMaxWait(t *testing.T) {
	b := newBed(nil)
	for s := range 61 {
		b.Add(at(float64(s)), Dump{Job: "j", Source: "f", Rank: int64(s), Time: at(float64(s)), State: stateOf(int64(s), int64(s+1))})
		if s < 60 {
			assert.Empty(t, b.Due(at(float64(s))))
		}
	}
	assert.Len(t, b.Due(at(60)), 1)
}

func TestShutdownDoesNotMakeRanksAbsent(t *testing.T) {
	b := newBed(func(c *IncidentConfig) { c.AllRanks = true })
	b.add(0, 0)
	got := b.End(false)
	assert.Len(t, got, 1)
	assert.Empty(t, got[0].Absent)
}

func TestTwins(t *testing.T) {
	add := func(b bed, source string, created int64, now float64) {
		b.Add(at(now), Dump{Job: "j", Source: source, Rank: 0, Time: at(now), State: stateOf(0, created)})
	}
	b := newBed(nil)
	add(b, "rank_0", 100, 0)
	add(b, "rank_0.json", 200, 1)
	b.add(1, 1)
	got := b.Due(at(20))[0]
	states, absent := ranksOf(got)
	assert.Equal(t, []int64{1}, states, "of two processes that call themselves one rank nobody knows which is right")
	assert.Equal(t, map[int64]model.AbsenceReason{0: model.AbsentRefused}, absent)
	assert.Len(t, got.Refused, 2)
	assert.Equal(t, RefusedTwin, got.Refused[0].Reason)

	b = newBed(nil)
	add(b, "rank_0", 100, 0)
	later := stateOf(0, 100)
	later.Ops = append(later.Ops, model.StateOp{Seq: 8, Created: 300})
	later.LastEnqueue = 300
	b.Add(at(1), Dump{Job: "j", Source: "again_0", Rank: 0, Time: at(1), State: later})
	got = b.Due(at(20))[0]
	assert.Empty(t, got.Refused)
	assert.Len(t, got.States, 1)
	assert.Equal(t, int64(300), got.States[0].LastEnqueue, "one process wrote both: the later counts")
}

func TestDumpsOfAnotherWorldAreRefused(t *testing.T) {
	b := newBed(nil)
	for rank := range int64(3) {
		b.add(0, rank)
	}
	other := stateOf(7, 500)
	other.Comms[0].Members = []int64{0, 1, 2, 3, 4, 5, 6, 7}
	b.Add(at(0), Dump{Job: "j", Source: "f7", Rank: 7, Time: at(0), State: other})
	got := b.Due(at(20))[0]
	states, absent := ranksOf(got)
	assert.Equal(t, []int64{0, 1, 2}, states)
	assert.Equal(t, map[int64]model.AbsenceReason{7: model.AbsentRefused}, absent)

	b = newBed(nil)
	b.add(0, 0)
	b.Add(at(0), Dump{Job: "j", Source: "f7", Rank: 7, Time: at(0), State: other})
	states, absent = ranksOf(b.Due(at(20))[0])
	assert.Empty(t, states, "one against one")
	assert.Len(t, absent, 2)
}

func TestUnreadableAndStale(t *testing.T) {
	b := newBed(nil)
	b.add(0, 0)
	b.Add(at(0), Dump{Job: "j", Source: "f1", Rank: 1, Time: at(0), Fault: "dump is empty"})
	b.Add(at(0), Dump{Job: "j", Source: "f2", Rank: 2, Time: at(-300), State: stateOf(2, 9)})
	got := b.Due(at(20))[0]
	states, absent := ranksOf(got)
	assert.Equal(t, []int64{0}, states)
	assert.Equal(t, map[int64]model.AbsenceReason{1: model.AbsentUnreadable, 2: model.AbsentStale}, absent)
	assert.Equal(t, "f1: dump is empty", got.Absent[0].Detail)
}

func TestBounds(t *testing.T) {
	b := newBed(func(c *IncidentConfig) { c.MaxRanks, c.MaxJobs = 2, 1 })
	for rank := range int64(3) {
		b.add(0, rank)
	}
	b.Add(at(0), Dump{Job: "other", Source: "o", Rank: 0, Time: at(0), State: stateOf(0, 1)})
	b.Add(at(0), Dump{Job: "j", Source: "o", Rank: MaxRanks, Time: at(0), State: stateOf(0, 1)})
	assert.Len(t, b.TakeOverflow(), 3)
	assert.Empty(t, b.TakeOverflow())
	assert.Len(t, b.Due(at(10)), 1)
	b.Add(at(20), Dump{Job: "other", Source: "o", Rank: 0, Time: at(20), State: stateOf(0, 1)})
	assert.Empty(t, b.TakeOverflow(), "a job that waits for nothing makes room")
}
