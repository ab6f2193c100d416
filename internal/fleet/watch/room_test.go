// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// requireCounts walks all jobs, and compares what is counted with what is there.
func requireCounts(t *testing.T, w *Watch) {
	t.Helper()
	ranks, comms, members := 0, 0, 0
	for _, j := range w.jobs {
		of := 0
		for _, c := range j.comms {
			of += len(c.members)
		}
		require.Equal(t, []int{len(j.ranks), len(j.comms), of}, []int{rankCount(j), commCount(j), memberCount(j)}, j.key)
		ranks, comms, members = ranks+len(j.ranks), comms+len(j.comms), members+of
	}
	require.Equal(t, []int{ranks, comms, members}, []int{w.ranks, w.comms, w.members})
}

// wordy adds a job of two ranks whose texts are long, and of one communicator of both.
func (r *rig) wordy(name string) {
	for n := range int64(2) {
		s := state(&plan{name, []int{0, 1}, [][]int64{{0, 1}}}, n)
		s.Rank.HostName, s.Rank.HWID, s.Comms[0].Comm.Name = long(int(n)), long(int(n)), long(0)
		r.AddState(&s, r.now)
	}
}

// seats has a rank of a job say its place in a communicator that it alone reports.
func (r *rig) seats(job string, rank int64, comm string, size int64) {
	s := state(&plan{job, make([]int, rank+1), nil}, rank)
	s.Rank.HostName, s.Rank.HostID = "", "" // it may be any that the rank is on
	s.Comms = []model.CommState{{Comm: model.Comm{ID: comm, Rank: model.Some(int64(0)), Size: model.Some(size)}}}
	r.AddState(&s, r.now)
}

// The job leaves that holds most of what is short, and not one that holds more bytes.
func TestWatch_CountIsShort_JobThatHoldsItLeaves(t *testing.T) {
	for name, tc := range map[string]struct {
		limit func(*Config)
		hoard func(*rig)
		ask   func(*rig)
	}{
		"ranks": {
			func(c *Config) { c.MaxRanks = 8 },
			func(r *rig) { r.states(&plan{"hostile", make([]int, 6), nil}) },
			func(r *rig) { r.states(&plan{"new", make([]int, 1), nil}) },
		},
		"communicators": {
			func(c *Config) { c.MaxComms = 6 },
			func(r *rig) {
				for i := range 5 {
					r.seats("hostile", 0, fmt.Sprint("0x", i), 1)
				}
			},
			func(r *rig) { r.seats("new", 0, "0xa", 1) },
		},
		"members": {
			func(c *Config) { c.MaxMembers = 20 },
			func(r *rig) { r.seats("hostile", 0, "0x1", 18) },
			func(r *rig) { r.seats("new", 0, "0xa", 2) },
		},
		"ranks that are members": {
			func(c *Config) { c.MaxRanks = 8 },
			func(r *rig) { r.states(&plan{"hostile", make([]int, 5), nil}) },
			func(r *rig) { r.states(&plan{"new", make([]int, 1), [][]int64{{0, 1}}}) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(tc.limit)
			r.wordy("wordy")
			tc.hoard(r)
			require.Len(t, r.Watch.jobs, 2)
			require.Greater(t, r.Watch.jobs["life of wordy"].share.Bytes(), r.Watch.jobs["life of hostile"].share.Bytes())
			tc.ask(r)
			assert.NotNil(t, r.Watch.jobs["life of wordy"], "it holds little of what is short")
			assert.Nil(t, r.Watch.jobs["life of hostile"])
			assert.EqualValues(t, 1, r.Stats().JobsEvicted)
			assert.Zero(t, r.Stats().RanksRefused+r.Stats().CommsRefused)
			requireCounts(t, r.Watch)
		})
	}
}

// A communicator that finds no room in one count drops no job for its need of another.
func TestWatch_CommunicatorThatIsRefused_DropsNoJob(t *testing.T) {
	for name, members := range map[string][]int64{
		"for its members": {0, 1, 2, 3, 4, 5, 6},
		"for its ranks":   {0, 1, 2, 3, 4, 5},
		"for a bad rank":  {0, 1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(func(c *Config) { c.MaxComms, c.MaxMembers, c.MaxRanks = 2, 6, 5 })
			r.wordy("wordy")
			r.seats("wordy", 0, "0x1", 1)
			s := state(&plan{"new", make([]int, 1), nil}, 0)
			s.Comms = []model.CommState{{Comm: model.Comm{ID: "c"}, Members: members}}
			r.AddState(&s, r.now)
			assert.NotNil(t, r.Watch.jobs["life of wordy"])
			assert.Zero(t, r.Stats().JobsEvicted)
			assert.EqualValues(t, 1, r.Stats().CommsRefused)
			assert.Equal(t, 3, r.ranks, "none is added for a communicator that is refused")
			requireCounts(t, r.Watch)
		})
	}
}

// What a job holds is counted down when its communicators fall silent, when it restarts and when it leaves.
func TestWatch_CommunicatorsThatAreForgotten_CountNoMore(t *testing.T) {
	r := newRig(func(c *Config) { c.MaxMembers = 20 })
	r.wordy("quiet")
	r.seats("restarts", 0, "0x1", 9)
	requireCounts(t, r.Watch)
	s := state(&plan{"restarts", make([]int, 1), nil}, 0)
	s.Rank.PID = model.Some[int64](7)
	r.AddState(&s, r.now)
	requireCounts(t, r.Watch)
	assert.Equal(t, 2, r.members)
	r.now = r.now.Add(r.cfg.Silent - time.Second)
	r.AddState(&s, r.now)
	r.seats("quiet", 0, "0x2", 3)
	r.now = r.now.Add(time.Second)
	r.Tick(r.now)
	requireCounts(t, r.Watch)
	assert.Equal(t, 3, memberCount(r.Watch.jobs["life of quiet"]), "the other has fallen silent")
	r.evict(r.Watch.jobs["life of quiet"])
	requireCounts(t, r.Watch)
}

// Where more is counted than the jobs hold, none of them can make room: the search ends, and no job leaves.
func TestWatch_CountAboveWhatJobsHold_FindsNoRoom(t *testing.T) {
	for name, of := range map[string]func(*job) int{
		"no job holds any":       func(*job) int { return 0 },
		"one that is named does": commCount,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil)
			r.states(&plan{"asks", make([]int, 1), nil})
			r.seats("new", 0, "0x1", 1)
			calls := 0
			n := need{of: func(j *job) int {
				if calls++; calls > 100 {
					t.Fatal("it asks without end")
				}
				return of(j)
			}, held: 5, limit: 3}
			assert.False(t, r.makeRoom(r.Watch.jobs["life of asks"], n))
			assert.Len(t, r.Watch.jobs, 2)
		})
	}
}
