// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Two machines of one id, as of one image, are told of as one: nothing is known of it then.
func TestTwins(t *testing.T) {
	r := newRig(nil, oldDriver, "")
	r.jobs = []plan{{"job", []int{0, 1}, [][]int64{{0, 1}}}}
	for i := range int64(24) {
		for life, v := range []string{newDriver, newDriver, newDriver} { // even where they agree
			o := version(1, model.VersionKernelDriver, v, i+1)
			o.Life = int64(life + 1)
			r.observe(&o)
		}
		require.Empty(t, r.pass(5*time.Minute))
	}
	assert.EqualValues(t, 1, r.Stats().Contested)
}

// A receiver that starts anew goes on; one whose host's clock was set back does when its earlier
// life was silent for long.
func TestLives(t *testing.T) {
	r := newRig(nil, oldDriver, "")
	r.jobs = []plan{{"job", []int{0, 1}, [][]int64{{0, 1}}}}
	tell := func(life, revision int64, v string) {
		o := version(1, model.VersionKernelDriver, v, revision)
		o.Life = life
		r.observe(&o)
	}
	driver := func() string {
		if s := &r.nodes["id-node1"].sets[0]; r.live(r.nodes["id-node1"], s, r.now) {
			return s.entries[0].version
		}
		return ""
	}
	tell(7, 100, oldDriver)
	tell(8, 1, newDriver)
	assert.Equal(t, newDriver, driver())
	r.pass(20 * time.Minute)
	assert.Empty(t, driver())
	tell(3, 1, oldDriver)
	assert.Equal(t, oldDriver, driver())
	tell(2, 5, newDriver)
	assert.Empty(t, driver(), "an earlier one speaks, too")
}

// A rank that moved, or whose process is another, begins another life of the job; two jobs of one
// name never are one that mixes.
func TestJobsOfOneName(t *testing.T) {
	r := newRig(nil, oldDriver, oldDriver, newDriver, newDriver)
	one, two := plan{"job", []int{0, 1}, [][]int64{{0, 1}}}, plan{"job", []int{2, 3}, [][]int64{{0, 1}}}
	for i := range 60 {
		s := state(&one, int64(i%2))
		r.AddState(&s, r.now)
		s = state(&two, int64((i+1)%2))
		r.AddState(&s, r.now)
		require.Empty(t, r.pass(time.Minute))
	}
	assert.Positive(t, r.Stats().Restarted)

	before := r.Stats().Restarted
	s := state(&two, 0)
	s.Rank.PID = model.Some[int64](7)
	r.AddState(&s, r.now)
	assert.Equal(t, before+1, r.Stats().Restarted)
	s.Source, s.Rank.PID, s.Rank.HostID, s.Rank.HostName = model.StateRAS, model.Some[int64](8), "", ""
	r.AddState(&s, r.now)
	assert.Equal(t, before+1, r.Stats().Restarted, "another source may count processes of a container")
}

// Ranks are found on nodes by id, and by name where that can be no other's.
func TestWhereRanksAre(t *testing.T) {
	r := newRig(nil)
	for _, n := range [][2]string{{"id-a", "a"}, {"id-b", "b"}, {"id-c", "twin"}, {"id-d", "twin"}, {"", "e"}} {
		o := version(0, model.VersionKernelDriver, oldDriver, 1)
		o.HostID, o.HostName = n[0], n[1]
		r.observe(&o)
	}
	r.Tick(r.now)
	for _, c := range []struct{ id, name, want string }{
		{"id-a", "a", "id-a"},
		{"id-a", "pod-7", "id-a"},
		{"", "b", "id-b"},
		{"b", "b", "id-b"}, // no id of its own
		{"id-z", "b", ""},  // another host of that name
		{"", "twin", ""},
		{"id-d", "twin", "id-d"},
		{"id-e", "e", "e"},
		{"", "", ""},
		{"", "z", ""},
	} {
		got := ""
		if n := r.nodeOf(&rank{hostID: c.id, hostName: c.name}); n != nil {
			got = n.key
		}
		assert.Equal(t, c.want, got, "%+v", c)
	}
}

// What was heard of a rank just now need not be read again, unless it moved.
func TestKnows(t *testing.T) {
	r := newRig(nil)
	s := state(&plan{"job", []int{0, 1}, [][]int64{{0, 1}}}, 1)
	assert.False(t, r.Knows(&s.Rank, s.Source, r.now))
	r.AddState(&s, r.now)
	assert.True(t, r.Knows(&s.Rank, s.Source, r.now))
	assert.False(t, r.Knows(&s.Rank, model.StateRAS, r.now))
	assert.False(t, r.Knows(&s.Rank, "hearsay", r.now))
	assert.False(t, r.Knows(&s.Rank, s.Source, r.now.Add(time.Minute)))
	moved := s.Rank
	moved.HostID = "id-node7"
	assert.False(t, r.Knows(&moved, s.Source, r.now))
	other := s.Rank
	other.Rank = 0
	assert.False(t, r.Knows(&other, s.Source, r.now), "it was named by rank 1 only")
}

// Of a process that is gone nothing is known, and members that contradict one another say nothing.
func TestMembersThatSayNothing(t *testing.T) {
	r := newRig(nil, oldDriver, newDriver)
	p := plan{"job", []int{0, 1}, [][]int64{{0, 1}}}
	var said []string
	run := func(change func(n int64, s *model.RankState)) []string {
		r = newRig(nil, oldDriver, newDriver)
		said = nil
		for range 12 {
			for n := range int64(2) {
				s := state(&p, n)
				change(n, &s)
				r.AddState(&s, r.now)
			}
			said = append(said, r.pass(5*time.Minute)...)
		}
		return said
	}
	assert.Len(t, run(func(int64, *model.RankState) {}), 1)
	assert.Empty(t, run(func(n int64, s *model.RankState) {
		if n == 1 {
			s.Process = model.ProcessDead
		}
	}))
	assert.Empty(t, run(func(_ int64, s *model.RankState) { s.Comms[0].Members = nil }))
	assert.Positive(t, r.Stats().MembersUnknown)
	assert.Empty(t, run(func(_ int64, s *model.RankState) { s.Comms[0].MembersInferred = true }))
	assert.Empty(t, run(func(n int64, s *model.RankState) { s.Comms[0].Members = []int64{0, 1 + n} }), "which of the two is right?")
	assert.Empty(t, run(func(_ int64, s *model.RankState) { s.Source = "hearsay" }))
	assert.Empty(t, run(func(_ int64, s *model.RankState) { s.Rank.HostName, s.Rank.HostID = "", "" }), "as NCCL's RAS has it")
}

// A communicator of which each member knows its own place only is as good, if its id is no other's.
func TestMembersThatSayTheirPlace(t *testing.T) {
	run := func(id string, place func(n int64) int64) (said []string, r *rig) {
		r = newRig(nil, oldDriver, newDriver)
		for range 12 {
			for n := range int64(2) {
				s := state(&plan{"job", []int{0, 1}, [][]int64{{0, 1}}}, n)
				s.Comms[0].Comm = model.Comm{ID: id, Size: model.Some[int64](3), Rank: model.Some(place(n))}
				s.Comms[0].Members = nil
				r.AddState(&s, r.now)
			}
			said = append(said, r.pass(5*time.Minute)...)
		}
		return said, r
	}
	own := func(n int64) int64 { return n }
	said, r := run("0xabc", own)
	assert.Equal(t, []string{"0xabc nvidia_kernel_driver: 1×550.90.07, 1×580.126.09; minority [1] on [node1]"}, said)
	ev := evidenceOf(&r.Standing(r.now)[0])
	assert.Equal(t, []int{3, 2}, []int{ev.Ranks, ev.Known}, "of the third nothing is known")
	r.pass(time.Hour)
	assert.Zero(t, r.members)

	said, _ = run("7", own)
	assert.Empty(t, said, "each process counts its groups")
	said, r = run("0xabc", func(int64) int64 { return 1 })
	assert.Empty(t, said, "two have one place")
	assert.Positive(t, r.Stats().MembersUnknown)
	said, _ = run("0xabc", func(int64) int64 { return 3 })
	assert.Empty(t, said)
}
