// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestRelated(t *testing.T) {
	base := model.Finding{
		JobID: "j", Incarnation: "i", Start: 10, Time: 20, Rank: model.Some(int64(3)),
		Host: "h", HWID: "g", Link: "l", CommID: "c",
	}
	tests := []struct {
		name  string
		other model.Finding
		want  bool
	}{
		{"same rank", model.Finding{Start: 20, Time: 30, Rank: model.Some(int64(3))}, true},
		{"rank among ranks", model.Finding{Start: 0, Time: 10, Ranks: []int64{1, 3}}, true},
		{"same host", model.Finding{Start: 12, Time: 13, Host: "h"}, true},
		{"same device", model.Finding{Start: 12, Time: 13, HWID: "g"}, true},
		{"same link", model.Finding{Start: 12, Time: 13, Link: "l"}, true},
		{"same communicator", model.Finding{Start: 12, Time: 13, CommID: "c"}, true},
		{"before", model.Finding{Start: 0, Time: 9, Host: "h"}, false},
		{"after", model.Finding{Start: 21, Time: 30, Host: "h"}, false},
		{"elsewhere", model.Finding{Start: 12, Time: 13, Host: "h2", Rank: model.Some(int64(4))}, false},
		{"nowhere", model.Finding{Start: 12, Time: 13}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.other.JobID, tt.other.Incarnation = "j", "i"
			assert.Equal(t, tt.want, related(&base, &tt.other))
			assert.Equal(t, tt.want, related(&tt.other, &base))
			tt.other.Incarnation = "next"
			assert.False(t, related(&base, &tt.other), "another incarnation")
		})
	}
}

func TestIncidentIsFrozenAndShared(t *testing.T) {
	e := engine(nil)
	first := e.Add(received("a", 1, 1, 0, 10), t0)[0].Finding
	require.NotEmpty(t, first.IncidentID)
	second := e.Add(received("b", 1, 1, 5, 15), t0)[0].Finding
	assert.Equal(t, first.IncidentID, second.IncidentID)
	apart := e.Add(received("c", 1, 2, 5, 15), t0)[0].Finding
	assert.NotEqual(t, first.IncidentID, apart.IncidentID)
	again := e.Add(received("a", 2, 1, 0, 20), t0)[0].Finding
	assert.Equal(t, first.IncidentID, again.IncidentID)
}

// Rank 1 is slow, rank 2 is slow; then a fault of the host of both is found.
func TestLaterFindingConnectsIncidents(t *testing.T) {
	e := engine(nil)
	a := e.Add(received("a", 1, 1, 0, 10), t0)[0].Finding
	b := e.Add(received("b", 1, 2, 0, 10), t0)[0].Finding
	require.NotEqual(t, a.IncidentID, b.IncidentID)

	both := received("c", 1, 1, 5, 6)
	both.Rank, both.Ranks = model.Optional[int64]{}, []int64{1, 2}
	events := e.Add(both, t0)
	assert.Equal(t, []string{"b 2 updated", "c 1 open+"}, said(events))
	for _, ev := range events {
		assert.Equal(t, a.IncidentID, ev.Finding.IncidentID, ev.Finding.ID)
	}
	assert.Equal(t, []string{"b 3 updated"}, said(e.Add(received("b", 2, 2, 0, 11), t0)), "the source counts on; we count above it")
}

// An update widens the interval and meets a finding it did not touch before.
func TestUpdateConnectsIncidents(t *testing.T) {
	e := engine(nil)
	a := e.Add(received("a", 1, 1, 0, 10), t0)[0].Finding
	e.Add(received("b", 1, 1, 20, 30), t0)
	events := e.Add(received("a", 2, 1, 0, 25), t0)
	assert.Equal(t, []string{"b 2 updated", "a 2 updated"}, said(events))
	assert.Equal(t, a.IncidentID, events[0].Finding.IncidentID)
}

func TestClosedFindingsStillJoin(t *testing.T) {
	e := engine(nil)
	a := e.Add(received("a", 1, 1, 0, 10), t0)[0].Finding
	e.Flush()
	b := e.Add(received("b", 1, 1, 5, 20), t0)[0].Finding
	assert.Equal(t, a.IncidentID, b.IncidentID)
}

func TestIncidentOfTheSourceIsKept(t *testing.T) {
	e := engine(nil)
	f := received("a", 1, 1, 0, 10)
	f.IncidentID = "given"
	assert.Equal(t, "given", e.Add(f, t0)[0].Finding.IncidentID)
}

// A hang, the straggler that the same rank was before, the clock of its host, and what dumps
// say that do not know the job's life are one incident.
func TestHangJoinsStragglerAndClock(t *testing.T) {
	e := engine(nil)
	add := func(f model.Finding) model.Finding {
		events := e.Add(f, t0)
		return events[len(events)-1].Finding
	}
	slow := add(model.Finding{
		ID: "slow", Revision: 1, Kind: model.FindingStraggler, JobID: "j", Incarnation: "i", Start: 10, Time: 40,
		Rank: model.Some(int64(9)), Host: "node3",
	})
	hang := add(model.Finding{
		ID: "hang", Revision: 1, Kind: model.FindingDesync, Class: model.ClassNotScheduled, JobID: "j", Incarnation: "i", Start: 35, Time: 50,
		Rank: model.Some(int64(9)), Host: "node3", CommID: "0xabc", Waiting: []int64{1, 2},
	})
	clock := add(model.Finding{ID: "clock", Revision: 1, Kind: model.FindingClock, Class: model.ClassStep, Start: 30, Time: 45, Host: "node3"})
	dumps := add(model.Finding{
		ID: "dumps", Revision: 1, Kind: model.FindingDesync, Class: model.ClassIncompleteEvidence, JobID: "j", Start: 36, Time: 55,
		Candidates: []int64{8, 9},
	})
	for _, f := range []model.Finding{hang, clock, dumps} {
		assert.Equal(t, slow.IncidentID, f.IncidentID, f.ID)
	}
	victim := add(model.Finding{
		ID: "victim", Revision: 1, Kind: model.FindingStraggler, JobID: "j", Incarnation: "i", Start: 35, Time: 40, Rank: model.Some(int64(2)), Host: "node1",
	})
	assert.NotEqual(t, slow.IncidentID, victim.IncidentID, "who waits for a hang has no part in it")
}

// The clock of a host concerns all of its jobs, and makes no incident of two of them.
func TestClockDoesNotJoinJobs(t *testing.T) {
	e := engine(nil)
	of := func(id, job string, kind string) model.Finding {
		events := e.Add(model.Finding{ID: id, Revision: 1, Kind: kind, JobID: job, Incarnation: job, Start: 10, Time: 40, Host: "node3"}, t0)
		return events[len(events)-1].Finding
	}
	a, clock := of("a", "job a", model.FindingDesync), of("clock", "", model.FindingClock)
	b := of("b", "job b", model.FindingDesync)
	assert.Equal(t, a.IncidentID, clock.IncidentID)
	assert.NotEqual(t, a.IncidentID, b.IncidentID)
	events := e.Add(model.Finding{ID: "clock", Revision: 2, Kind: model.FindingClock, Start: 10, Time: 60, Host: "node3"}, t0)
	assert.Len(t, events, 1, "nobody changes incident")
	assert.Equal(t, a.IncidentID, events[0].Finding.IncidentID)
}

// Two jobs may report the same incarnation, and with it the same finding.
func TestIncident_SameFindingOfTwoJobs_HasTwoIDs(t *testing.T) {
	e := engine(nil)
	var ids []string
	for _, job := range []string{"a", "b"} {
		f := model.Finding{ID: "1", JobID: job, Incarnation: "same", Kind: "straggler", Status: model.StatusOpen, Rank: model.Some(int64(3))}
		ids = append(ids, e.Add(f, t0)[0].Finding.IncidentID)
	}
	assert.NotEmpty(t, ids[0])
	assert.NotEqual(t, ids[0], ids[1])
}

// The memory of ended findings is full while an incident takes in another: what is forgotten then leaves it.
func TestIncidentsJoin_EndedFindingsAreForgotten(t *testing.T) {
	e := engine(func(c *Config) { c.MaxOpen = 2 })
	e.Add(received("a", 1, 1, 0, 100), t0)
	e.Add(received("b", 1, 2, 0, 100), t0)
	e.Add(shut(received("x", 1, 2, 0, 100)), t0)
	e.Add(shut(received("y", 1, 9, 0, 100)), t0)
	z := shut(received("z", 1, 1, 0, 100))
	z.Ranks = []int64{1, 2}
	events := e.Add(z, t0)
	ids := map[string]bool{}
	for _, ev := range events {
		ids[ev.Finding.IncidentID] = true
	}
	assert.Len(t, ids, 1)
	assert.Equal(t, recount(e), e.Bytes())
	e.Flush()
	assert.Equal(t, recount(e), e.Bytes())
}
