// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

// grid is four processes with communicators of rows and of columns, and none of all.
func grid() []rastest.Comm {
	m := func(rank, pid int, n int64) rastest.Member {
		return rastest.Member{Rank: rank, PID: pid, Host: "n" + string(rune('0'+pid/10)), AllReduce: n}
	}
	return []rastest.Comm{
		{Hash: 0xa1, Members: []rastest.Member{m(0, 10, 9), m(1, 11, 9)}},
		{Hash: 0xa2, Members: []rastest.Member{m(0, 20, 9), m(1, 21, 8)}},
		{Hash: 0xb1, Members: []rastest.Member{m(0, 10, 5), m(1, 20, 5)}},
		{Hash: 0xb2, Members: []rastest.Member{m(0, 11, 5), m(1, 21, 5)}},
	}
}

func TestLayouts_WithoutAWorld_NumberProcesses(t *testing.T) {
	s := parse(t, rastest.JSON(grid()...))
	all := Layouts(s)
	require.Len(t, all, 1)
	assert.False(t, all[0].Named())
	assert.Equal(t, "0x00000000000000a1", all[0].Hash())
	j := all[0].Job(s, Origin{From: "f.json", Saved: true})
	assert.True(t, j.Unnumbered)
	assert.Zero(t, j.WorldSize)
	require.Len(t, j.States, 4)
	for i, want := range []string{"f.json: process 10 on n1, GPU 0", "f.json: process 11 on n1, GPU 0", "f.json: process 20 on n2, GPU 0", "f.json: process 21 on n2, GPU 0"} {
		assert.Equal(t, want, j.States[i].Name)
		assert.Equal(t, int64(i), j.States[i].Rank.Rank)
		assert.False(t, j.States[i].Rank.WorldSize.OK)
		assert.Len(t, j.States[i].Comms, 2)
	}
	assert.Equal(t, []int64{1, 3}, j.States[3].Comms[1].Members)
	assert.Equal(t, "n2", j.States[3].Rank.HostName)
}

// Another answer of the job gives its processes the same numbers, though it lists fewer.
func TestLayout_OfOneAnswer_NumbersAnother(t *testing.T) {
	comms := grid()
	l := Layouts(parse(t, rastest.JSON(comms...)))[0]
	text := prose(t, rastest.Report(4, "", "#0-0 (a2) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"+
		"  Rank 0 has launched up to operation 9 -- [process information not found]\n  Rank 1 has launched up to operation 8 -- GPU 0 managed by process 21 on node n2\n"))
	text.Comms[0].Size = 2
	j := l.Job(text, Origin{From: "f.txt", Saved: true})
	require.Len(t, j.States, 2)
	assert.Equal(t, []int64{2, 3}, []int64{j.States[0].Rank.Rank, j.States[1].Rank.Rank})
	assert.False(t, l.Has(0xffff))
	other := l.Job(parse(t, rastest.JSON(rastest.Comm{Hash: 0xffff, Members: comms[0].Members})), Origin{})
	assert.Empty(t, other.States, "a communicator of another job")
}

// Replicas share a RAS network and no communicator: each is laid out apart.
func TestLayouts_OfReplicas_Apart(t *testing.T) {
	m := func(rank, pid int) rastest.Member {
		return rastest.Member{Rank: rank, PID: pid, Host: "h", AllReduce: 3}
	}
	s := parse(t, rastest.JSON(
		rastest.Comm{Hash: 0xc1, Members: []rastest.Member{m(0, 1), m(1, 2)}},
		rastest.Comm{Hash: 0xc2, Members: []rastest.Member{m(0, 3), m(1, 4), m(2, 5)}}))
	all := Layouts(s)
	require.Len(t, all, 2)
	assert.True(t, all[0].Named() && all[1].Named(), "each has a communicator of all its processes")
	assert.Equal(t, []string{"0x00000000000000c2", "0x00000000000000c1"}, []string{all[0].Hash(), all[1].Hash()})
	assert.Len(t, all[0].Job(s, Origin{}).States, 3)
}

// Divide gives each layout its communicators of an answer, whatever their order, and of others none.
func TestDivide_GivesEachLayoutItsCommunicators(t *testing.T) {
	m := func(rank, pid int) rastest.Member {
		return rastest.Member{Rank: rank, PID: pid, Host: "h", AllReduce: 3}
	}
	a := rastest.Comm{Hash: 0xc1, Members: []rastest.Member{m(0, 1), m(1, 2)}}
	b := rastest.Comm{Hash: 0xc2, Members: []rastest.Member{m(0, 3), m(1, 4), m(2, 5)}}
	part := rastest.Comm{Hash: 0xc3, Members: []rastest.Member{m(0, 4), m(1, 5)}}
	all := Layouts(parse(t, rastest.JSON(a, b, part)))
	require.Len(t, all, 2)
	for name, tc := range map[string]struct {
		comms []rastest.Comm
		want  [2][]uint64
	}{
		"the same":  {[]rastest.Comm{a, b, part}, [2][]uint64{{0xc2, 0xc3}, {0xc1}}},
		"turned":    {[]rastest.Comm{part, a, b}, [2][]uint64{{0xc3, 0xc2}, {0xc1}}},
		"one alone": {[]rastest.Comm{b}, [2][]uint64{{0xc2}, nil}},
		"a new one": {[]rastest.Comm{{Hash: 0xdd, Members: a.Members}, a}, [2][]uint64{nil, {0xc1}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, rastest.JSON(tc.comms...))
			parts := Divide(all, s)
			require.Len(t, parts, 2)
			for i, p := range parts {
				var got []uint64
				for k := range p.Comms {
					got = append(got, p.Comms[k].Hash)
				}
				assert.Equal(t, tc.want[i], got)
				assert.Equal(t, s.NCCLVersion, p.NCCLVersion)
				assert.Equal(t, all[i].Job(s, Origin{From: "f"}), all[i].Job(p, Origin{From: "f"}))
			}
		})
	}
}

// Processes of containers that count their pids apart are told apart by their places.
func TestLayouts_OnePidOfSeveralProcesses_StayApart(t *testing.T) {
	m := func(rank int) rastest.Member {
		return rastest.Member{Rank: rank, PID: 1, Host: "h", AllReduce: int64(rank)}
	}
	s := parse(t, rastest.JSON(
		rastest.Comm{Hash: 0xd1, Members: []rastest.Member{m(0), m(1)}}, rastest.Comm{Hash: 0xd2, Members: []rastest.Member{m(0), m(1), m(2)}}))
	states := 0
	seen := map[int64]bool{}
	for _, l := range Layouts(s) {
		for _, st := range l.Job(s, Origin{}).States {
			states++
			seen[st.Rank.Rank] = true
		}
	}
	assert.GreaterOrEqual(t, states, 3)
	assert.GreaterOrEqual(t, len(seen), 3)
}

func TestLayouts_ProseOfAWorld_AreGlobalRanks(t *testing.T) {
	s := prose(t, rastest.Report(4, "", "#0-0 (ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"+
		"  3 ranks have launched up to operation 9\n  Rank 2 has launched up to operation 8 -- GPU 2 managed by process 21 on node n2\n"))
	all := Layouts(s)
	require.Len(t, all, 1)
	assert.True(t, all[0].Named())
	assert.Len(t, all[0].Job(s, Origin{Saved: true}).States, 4)
	s.GPUs = 8
	assert.False(t, Layouts(s)[0].Named(), "half of the job's GPUs are in no communicator that is listed")
}
