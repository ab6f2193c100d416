// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// op is an entry in short: what a test does not say is as in most of them.
type op struct {
	group     string // its name and, behind a slash, its description
	pg        int64
	name      string
	coll, p2p int64
	done      bool
}

func dumpOf(first int64, ops ...op) *frwrite.Dump {
	d := &frwrite.Dump{Version: "2.10", LibVersion: "2.27.3"}
	for i, o := range ops {
		name, desc, _ := strings.Cut(o.group, "/")
		e := frwrite.Entry{
			RecordID: first + int64(i), PGID: o.pg, Group: name, Desc: desc, ThreadName: "python3", ThreadID: "7",
			CollectiveSeq: o.coll, P2PSeq: o.p2p, OpID: o.coll + o.p2p, Name: o.name, Created: 1000 + int64(i),
			In: [][]int64{{2}}, Out: [][]int64{{4}}, InTypes: []string{"Float"}, OutTypes: []string{"Float"},
			State: frwrite.Scheduled, TimeoutMS: 600000,
			P2P: strings.Contains(o.name, "send") || strings.Contains(o.name, "recv"),
		}
		if o.done {
			e.State, e.Completed, e.Retired = frwrite.Completed, 2000+int64(i), true
		}
		d.Entries = append(d.Entries, e)
	}
	return d
}

func stateFrom(t *testing.T, w *frwrite.Dump, o StateOptions) model.RankState {
	t.Helper()
	d, err := Decode(frwrite.Pickle(w), Options{})
	require.NoError(t, err)
	return d.State(model.Rank{Rank: 1}, "x", o)
}

// batched has two batches of messages, the second open.
func batched() *frwrite.Dump {
	d := dumpOf(0,
		op{"7/pp", 2, "nccl:send 0->1", 1, 5, false},
		op{"7/pp", 2, "nccl:recv 0<-1", 1, 5, false},
		op{"7/pp", 2, "nccl:coalesced", 1, 5, true},
		op{"7/pp", 2, "nccl:send 0->1", 1, 6, false},
		op{"7/pp", 2, "nccl:recv 0<-1", 1, 6, false},
		op{"7/pp", 2, "nccl:coalesced", 1, 6, false},
	)
	d.Groups = []frwrite.Group{{Name: "7", Desc: "pp", Ranks: []int64{1, 3}}}
	d.Status = []frwrite.Status{{PGID: 2, Enqueued: 6, Started: -1, Completed: 5}}
	return d
}

// brief writes the operations of a state: name, number, batch and whether it is over.
func brief(s *model.RankState) (out []string) {
	for i := range s.Ops {
		o := &s.Ops[i]
		text := s.Comms[o.Comm].Comm.ID + " " + o.Name + " " + itoa(o.Seq)
		if o.Peer.OK {
			text += " with " + itoa(o.Peer.V)
		}
		if o.Batch.OK {
			text += " in " + itoa(o.Batch.V)
		}
		if o.Done {
			text += " over"
		}
		out = append(out, text)
	}
	return out
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Members of a batch have no end of their own: they take that of "coalesced".
func TestBatches(t *testing.T) {
	s := stateFrom(t, batched(), StateOptions{})
	assert.False(t, s.OnlyActive)
	assert.Equal(t, []string{
		"7 send 5 with 3 in 0 over", "7 recv 5 with 3 in 0 over", "7 send 6 with 3 in 3", "7 recv 6 with 3 in 3",
	}, brief(&s))
	// Collectives only: one had run before the recording, none since.
	assert.Equal(t, int64(1), s.Comms[0].Frontiers[0].Enqueued.V)
	assert.False(t, s.Comms[0].P2PShared)
}

// Where only what is active was dumped, the members of batches that are over are still
// there, and their ends are not.
func TestBatchesThatAreOver(t *testing.T) {
	w := batched().Active()
	s := stateFrom(t, w, StateOptions{})
	assert.True(t, s.OnlyActive)
	assert.Equal(t, []string{"7 send 6 with 3 in 3", "7 recv 6 with 3 in 3"}, brief(&s))
	assert.True(t, s.Comms[0].P2PShared)

	t.Run("of one message", func(t *testing.T) {
		d := dumpOf(0,
			op{"7/pp", 2, "nccl:send 0->1", 1, 5, false}, op{"7/pp", 2, "nccl:coalesced", 1, 5, true},
			op{"7/pp", 2, "nccl:send 0->1", 1, 6, false}, op{"7/pp", 2, "nccl:recv 0<-1", 1, 6, false}, op{"7/pp", 2, "nccl:coalesced", 1, 6, false},
		)
		d.Groups = []frwrite.Group{{Name: "7", Desc: "pp", Ranks: []int64{1, 3, 5}}}
		s := stateFrom(t, d.Active(), StateOptions{})
		assert.Equal(t, []string{"7 send 6 with 3 in 2", "7 recv 6 with 3 in 2"}, brief(&s))
	})
	t.Run("single messages are as they are recorded", func(t *testing.T) {
		d := dumpOf(0, op{"7/pp", 2, "nccl:send 0->1", 1, 4, true}, op{"7/pp", 2, "nccl:send 0->1", 1, 5, false}, op{"7/pp", 2, "nccl:send 0->2", 1, 6, false})
		d.Groups = []frwrite.Group{{Name: "7", Desc: "pp", Ranks: []int64{1, 3, 5}}}
		s := stateFrom(t, d.Active(), StateOptions{})
		assert.Equal(t, []string{"7 send 5 with 3", "7 send 6 with 5"}, brief(&s))
	})
	// The status counts batches and collectives as one: the last that was enqueued is of the kind whose
	// numbers have come to its number.
	for _, c := range []struct {
		name     string
		enqueued int64
		over     bool
	}{
		{"a collective was enqueued behind it", 4, true},
		{"the batch itself is the last, and its end is not there", 30, true},
		{"the batch before it is the last", 29, false},
		{"a collective before it is the last", 3, false},
		{"a later batch is the last", 31, true},
	} {
		t.Run("a batch in a group with collectives, "+c.name, func(t *testing.T) {
			d := dumpOf(500,
				op{"7/pp", 2, "nccl:send 0->1", 3, 29, false}, op{"7/pp", 2, "nccl:recv 0<-1", 3, 29, false}, op{"7/pp", 2, "nccl:coalesced", 3, 29, true},
				op{"7/pp", 2, "nccl:send 0->1", 3, 30, false}, op{"7/pp", 2, "nccl:recv 0<-1", 3, 30, false})
			d.Groups = []frwrite.Group{{Name: "7", Desc: "pp", Ranks: []int64{1, 3}}}
			d.Status = []frwrite.Status{{PGID: 2, Enqueued: c.enqueued, Started: -1, Completed: 3}}
			s := stateFrom(t, d.Active(), StateOptions{})
			open := slices.DeleteFunc(brief(&s), func(text string) bool { return strings.HasSuffix(text, " over") })
			assert.Equal(t, c.over, len(open) == 0, open)
		})
	}
	t.Run("a batch that the host is in", func(t *testing.T) {
		d := dumpOf(0, op{"0/default_pg", 0, "nccl:all_reduce", 9, 0, true}, op{"7/pp", 2, "nccl:send 0->1", 1, 5, false}, op{"7/pp", 2, "nccl:recv 0<-1", 1, 5, false})
		d.Groups = []frwrite.Group{{Name: "7", Desc: "pp", Ranks: []int64{1, 3}}}
		s := stateFrom(t, d.Active(), StateOptions{})
		assert.Equal(t, []string{"7 send 5 with 3 in 1", "7 recv 5 with 3 in 1"}, brief(&s))
	})
}

func TestCoalescedCollectives(t *testing.T) {
	t.Run("members recorded", func(t *testing.T) { // since 2.7
		s := stateFrom(t, dumpOf(0,
			op{"0/x", 0, "nccl:all_reduce", 3, 0, true},
			op{"0/x", 0, "nccl:_all_gather_base", 4, 0, false}, op{"0/x", 0, "nccl:_all_gather_base", 4, 0, false}, op{"0/x", 0, "nccl:coalesced", 4, 0, true},
		), StateOptions{})
		assert.Equal(t, []string{"0 all_reduce 3 over", "0 all_gather 4 in 1 over", "0 all_gather 4 in 1 over"}, brief(&s))
		assert.Equal(t, int64(4), s.Comms[0].Frontiers[0].Completed.V)
	})
	t.Run("members not recorded", func(t *testing.T) {
		s := stateFrom(t, dumpOf(0, op{"0/x", 0, "nccl:all_reduce", 3, 0, true}, op{"0/x", 0, "nccl:coalesced", 4, 0, false}), StateOptions{})
		assert.Equal(t, []string{"0 all_reduce 3 over", "0 coalesced 4"}, brief(&s))
	})
	t.Run("messages overwritten", func(t *testing.T) {
		s := stateFrom(t, dumpOf(900, op{"0/x", 0, "nccl:coalesced", 3, 8, true}, op{"0/x", 0, "nccl:all_reduce", 4, 8, true}), StateOptions{})
		assert.Equal(t, []string{"0 all_reduce 4 over"}, brief(&s))
	})
}

func TestFrontiers(t *testing.T) {
	some := model.Some[int64]
	t.Run("of entries and status", func(t *testing.T) {
		w := dumpOf(100, op{"0/x", 4, "nccl:all_reduce", 7, 0, true}, op{"0/x", 4, "nccl:all_reduce", 8, 0, false}, op{"0/x", 4, "nccl:all_reduce", 9, 0, false})
		w.Status = []frwrite.Status{{PGID: 4, Enqueued: 9, Started: 8, Completed: 6}}
		s := stateFrom(t, w, StateOptions{})
		// Its events were looked at when the dump was written, after the watchdog did.
		assert.Equal(t, []model.Frontier{{Enqueued: some(9), Started: some(8), Completed: some(7), FirstKept: some(7)}}, s.Comms[0].Frontiers)
		assert.Equal(t, int64(1002), s.LastEnqueue)
		assert.Equal(t, "2.27.3", s.LibVersion)
	})
	t.Run("nothing was overwritten", func(t *testing.T) {
		s := stateFrom(t, dumpOf(0, op{"0/x", 4, "nccl:all_reduce", 1, 0, true}), StateOptions{})
		assert.Equal(t, []model.Frontier{{Enqueued: some(1), Completed: some(1)}}, s.Comms[0].Frontiers)
	})
	t.Run("nothing is open", func(t *testing.T) {
		w := dumpOf(0)
		w.Groups = []frwrite.Group{{Name: "0", Desc: "default_pg", Ranks: []int64{0, 1}}}
		w.Status = []frwrite.Status{{PGID: 0, Enqueued: 40, Started: -1, Completed: 40}}
		s := stateFrom(t, w, StateOptions{})
		assert.True(t, s.OnlyActive)
		assert.Equal(t, []model.Frontier{{Enqueued: some(40), Completed: some(40)}}, s.Comms[0].Frontiers)
		assert.True(t, s.Comms[0].FrontiersInferred)
	})
	t.Run("open ones alone tell what is over", func(t *testing.T) {
		s := stateFrom(t, dumpOf(500, op{"0/x", 4, "nccl:all_reduce", 8, 0, false}, op{"0/x", 4, "nccl:all_reduce", 9, 0, false}), StateOptions{})
		assert.True(t, s.OnlyActive)
		assert.Equal(t, []model.Frontier{{Enqueued: some(9), Completed: some(7)}}, s.Comms[0].Frontiers)
	})
	t.Run("open ones in a full buffer do not", func(t *testing.T) {
		var ops []op
		for seq := range int64(smallestRing) {
			ops = append(ops, op{"0/x", 4, "nccl:all_reduce", 8 + seq, 0, false})
		}
		w := dumpOf(500, ops...)
		w.Status = []frwrite.Status{{PGID: 4, Enqueued: 39, Started: -1, Completed: 5}}
		s := stateFrom(t, w, StateOptions{})
		assert.False(t, s.OnlyActive)
		assert.Equal(t, []model.Frontier{{Enqueued: some(39), Completed: some(5), FirstKept: some(8)}}, s.Comms[0].Frontiers)
		w.Status = nil
		s = stateFrom(t, w, StateOptions{})
		assert.Equal(t, []model.Frontier{{Enqueued: some(39), FirstKept: some(8)}}, s.Comms[0].Frontiers)
	})
	t.Run("messages count in the status", func(t *testing.T) {
		w := dumpOf(500, op{"0/x", 4, "nccl:recv 1<-0", 8, 30, false}, op{"0/x", 4, "nccl:all_reduce", 9, 30, false})
		w.Status = []frwrite.Status{{PGID: 4, Enqueued: 9, Started: -1, Completed: 29}}
		s := stateFrom(t, w, StateOptions{})
		assert.True(t, s.Comms[0].P2PShared)
		assert.Equal(t, []model.Frontier{{Enqueued: some(9), Completed: some(29)}}, s.Comms[0].Frontiers)
		w.Entries = append([]frwrite.Entry{dumpOf(499, op{"0/x", 4, "nccl:all_reduce", 8, 29, true}).Entries[0]}, w.Entries...)
		s = stateFrom(t, w, StateOptions{})
		assert.False(t, s.Comms[0].P2PShared, "the entries tell")
		assert.Equal(t, []model.Frontier{{Enqueued: some(9), Completed: some(8), FirstKept: some(8)}}, s.Comms[0].Frontiers)
	})
	t.Run("the newest are cut off", func(t *testing.T) {
		w := dumpOf(100, op{"0/x", 4, "nccl:all_reduce", 7, 0, true}, op{"0/x", 4, "nccl:all_reduce", 8, 0, false}, op{"0/x", 4, "nccl:all_reduce", 9, 0, false})
		data := frwrite.Pickle(w)
		d, err := Decode(data[:len(data)-60], Options{})
		require.NoError(t, err)
		s := d.State(model.Rank{Rank: 1}, "x", StateOptions{})
		assert.NotEmpty(t, s.Partial)
		assert.False(t, s.Comms[0].Frontiers[0].Enqueued.OK, "how far it came was in what is lost")
		assert.Equal(t, some(7), s.Comms[0].Frontiers[0].Completed)
		w.Status = []frwrite.Status{{PGID: 4, Enqueued: 9, Started: -1, Completed: 7}}
		data = frwrite.Pickle(w)
		d, err = Decode(data[:len(data)-60], Options{})
		require.NoError(t, err)
		s = d.State(model.Rank{Rank: 1}, "x", StateOptions{})
		assert.Equal(t, some(9), s.Comms[0].Frontiers[0].Enqueued)
	})
}

// pg_status is keyed by the process's own numbers. Those without entries follow from order
// where all agrees, and are left out where not.
func TestStatusByOrder(t *testing.T) {
	base := func() *frwrite.Dump {
		w := dumpOf(500, op{"12/b", 5, "nccl:all_reduce", 8, 0, false})
		w.Groups = []frwrite.Group{{Name: "100", Desc: "c", Ranks: []int64{0, 1}}, {Name: "12", Desc: "b", Ranks: []int64{0, 1}}, {Name: "3", Desc: "a", Ranks: []int64{1}}}
		w.Status = []frwrite.Status{{PGID: 10, Enqueued: 70, Completed: 70}, {PGID: 2, Enqueued: 50, Completed: 50}, {PGID: 5, Enqueued: 8, Completed: 7}}
		return w
	}
	enqueued := func(s model.RankState) map[string]int64 {
		out := map[string]int64{}
		for _, c := range s.Comms {
			if len(c.Frontiers) > 0 && c.Frontiers[0].Enqueued.OK {
				out[c.Comm.Name] = c.Frontiers[0].Enqueued.V
			}
		}
		return out
	}
	assert.Equal(t, map[string]int64{"a": 50, "b": 8, "c": 70}, enqueued(stateFrom(t, base(), StateOptions{})))
	for name, change := range map[string]func(w *frwrite.Dump){
		"another count": func(w *frwrite.Dump) {
			w.Status = w.Status[:2]
			w.Status[1] = frwrite.Status{PGID: 5, Enqueued: 8, Completed: 7}
		},
		"a name that is no number":   func(w *frwrite.Dump) { w.Groups[0].Name = "a1b2c3" },
		"an order that is disproved": func(w *frwrite.Dump) { w.Groups[1].Name, w.Entries[0].Group = "101", "101" },
	} {
		t.Run(name, func(t *testing.T) {
			w := base()
			change(w)
			assert.Equal(t, map[string]int64{"b": 8}, enqueued(stateFrom(t, w, StateOptions{})))
		})
	}
}

func TestGloo(t *testing.T) {
	w := dumpOf(0, op{"0/default_pg", 0, "gloo:all_reduce", 1, 0, false}, op{"0/default_pg", 0, "gloo:all_reduce", 2, 0, false})
	w.Entries[0].Retired = true // over; the state stays scheduled
	w.Groups = []frwrite.Group{{Name: "", Desc: "undefined", Ranks: []int64{0, 1}}}
	w.Status = []frwrite.Status{{PGID: 0, Enqueued: 77, Started: -1, Completed: 70}}
	s := stateFrom(t, w, StateOptions{})
	require.Len(t, s.Comms, 1, "a group without a name is every group")
	assert.Equal(t, []string{"0 all_reduce 1 over", "0 all_reduce 2"}, brief(&s))
	assert.Equal(t, "gloo", s.Comms[0].Backend)
	assert.Empty(t, s.Comms[0].Members)
	// Its status counts something else.
	assert.Equal(t, []model.Frontier{{Enqueued: model.Some[int64](2), Completed: model.Some[int64](1)}}, s.Comms[0].Frontiers)
}

// For NCCL "retired" is no end: the watchdog lets go of what has timed out, too.
func TestRetiredIsNotOver(t *testing.T) {
	w := dumpOf(0, op{"0/default_pg", 0, "nccl:all_reduce", 1, 0, true}, op{"0/default_pg", 0, "nccl:all_reduce", 2, 0, false})
	w.Entries[1].Retired = true
	s := stateFrom(t, w, StateOptions{})
	assert.Equal(t, []string{"0 all_reduce 1 over", "0 all_reduce 2"}, brief(&s))
}

// torchcomms counts over all communicators of the process: its numbers join nobody.
func TestTorchcomms(t *testing.T) {
	w := dumpOf(0, op{"main/ncclx", 0, "ncclx:all_reduce", 5, 0, false}, op{"main/ncclx", 0, "ncclx:send", 6, 0, false})
	w.Entries[1].P2P = false // it does not tell messages apart
	s := stateFrom(t, w, StateOptions{})
	assert.Equal(t, model.ScopeProcess, s.Comms[0].Scope)
	assert.Equal(t, []string{"main all_reduce 5", "main send 6"}, brief(&s))
	assert.Equal(t, model.KindSend, s.Ops[1].Kind)
}

// Processes number their groups themselves: before 2.0 only the first is known to all.
func TestGroupsWithoutNames(t *testing.T) {
	const entry = `{"seq_id": 12, "pg_id": %, "profiling_name": "nccl:all_reduce", "state": "scheduled"}`
	d, err := Decode([]byte("["+strings.ReplaceAll(entry, "%", "0")+","+strings.ReplaceAll(entry, "%", "4")+"]"), Options{})
	require.NoError(t, err)
	s := d.State(model.Rank{Rank: 1}, "x", StateOptions{})
	require.Len(t, s.Comms, 2)
	assert.Equal(t, []any{"0", model.ScopeComm}, []any{s.Comms[0].Comm.ID, s.Comms[0].Scope})
	assert.Equal(t, []any{"pg_id 4", model.ScopeProcess}, []any{s.Comms[1].Comm.ID, s.Comms[1].Scope})
}

func TestUntracked(t *testing.T) {
	w := dumpOf(0, op{"0/x", 0, "nccl:all_reduce", 1, 0, true}, op{"0/x", 0, "nccl:all_reduce", 2, 0, true})
	s := stateFrom(t, w, StateOptions{})
	assert.Empty(t, s.Comms[0].Untracked)
	w.Entries[1].OpID = 5 // three were counted and not recorded
	s = stateFrom(t, w, StateOptions{})
	assert.NotEmpty(t, s.Comms[0].Untracked)
}

func TestWhatIsKept(t *testing.T) {
	var ops []op
	for i := range int64(30) {
		ops = append(ops, op{"0/x", 0, "nccl:all_reduce", i + 1, 0, i < 20})
	}
	s := stateFrom(t, dumpOf(0, ops...), StateOptions{Done: 3, Open: 4})
	assert.Equal(t, []string{
		"0 all_reduce 18 over", "0 all_reduce 19 over", "0 all_reduce 20 over",
		"0 all_reduce 21", "0 all_reduce 22", "0 all_reduce 23", "0 all_reduce 24",
	}, brief(&s))
	assert.Equal(t, int64(6), s.Dropped)
}

func TestOpFields(t *testing.T) {
	w := small("2.10")
	w.Stacks = true
	w.Entries[1].Name = "nccl:recv 0<-5" // nobody has that rank in the group
	d, err := Decode(frwrite.Pickle(w), Options{Stacks: true})
	require.NoError(t, err)
	s := d.State(model.Rank{Rank: 1}, "dump", StateOptions{})
	require.Len(t, s.Ops, 2)
	o := s.Ops[0]
	assert.Equal(t, model.AllReduce, o.Name)
	assert.Equal(t, "nccl:all_reduce", o.Recorded)
	assert.Equal(t, []string{"[[2048, 1, 5120]]", "bfloat16"}, []string{o.In, o.InType})
	assert.Equal(t, model.Some[int64](10485760), o.OutElems)
	assert.True(t, o.Done)
	assert.True(t, o.Started)
	assert.Equal(t, model.Some(180.0), o.Timeout)
	assert.Equal(t, "python3", o.Thread)
	assert.Equal(t, "forward (/job/train.py:12)\nmain (/job/train.py:40)", s.Stacks[o.Stack-1])
	o = s.Ops[1]
	assert.Equal(t, "int64, float32, float16", o.InType)
	assert.Equal(t, model.Optional[int64]{}, o.Peer)
	assert.Equal(t, model.Some[int64](5), o.PeerLocal)
	assert.Equal(t, int64(70000), o.Seq)
	c := s.Comms[0].Comm
	assert.Equal(t, model.Comm{ID: "0", Name: "default_pg", Digest: model.RanksDigest([]int64{0, 1, 2, 3}), Size: model.Some[int64](4), Rank: model.Some[int64](1)}, c)
}

func TestNames(t *testing.T) {
	for in, want := range map[string]nameInfo{
		"nccl:_all_gather_base":          {backend: "nccl", name: model.AllGather, kind: model.KindCollective, peer: -1},
		"nccl:ALLGATHER_coalesced":       {backend: "nccl", name: model.AllGather, kind: model.KindCollective, peer: -1},
		"nccl:REDUCE_SCATTER_coalesced":  {backend: "nccl", name: model.ReduceScatter, kind: model.KindCollective, peer: -1},
		"nccl:_reduce_oop":               {backend: "nccl", name: model.Reduce, kind: model.KindCollective, peer: -1},
		"nccl2:all_reduce":               {backend: "nccl2", name: model.AllReduce, kind: model.KindCollective, peer: -1},
		"gloo:gather":                    {backend: "gloo", name: "gather", kind: model.KindCollective, peer: -1},
		"hccl:send 12->3":                {backend: "hccl", name: "send", kind: model.KindSend, peer: 3},
		"nccl:recv 0<-15":                {backend: "nccl", name: "recv", kind: model.KindRecv, peer: 15},
		"nccl2:recv 3<-?":                {backend: "nccl2", name: "recv", kind: model.KindRecv, peer: -1},
		"ncclx:recv":                     {backend: "ncclx", name: "recv", kind: model.KindRecv, peer: -1},
		"nccl:send 0->99999999999999999": {backend: "nccl", name: "send", kind: model.KindSend, peer: -1},
		"nccl:coalesced":                 {backend: "nccl", name: "coalesced", kind: model.KindCollective, ends: true, peer: -1},
		"all_to_all":                     {name: model.AllToAll, kind: model.KindCollective, peer: -1},
	} {
		want.known = true
		assert.Equal(t, want, parseName(in), in)
	}
}

// A root may be through many operations that the others are in: what it called there is shown.
func TestState_OperationsOfARootThatIsAhead(t *testing.T) {
	for name, c := range map[string]struct {
		calls []string
		want  int
	}{
		"broadcasts behind a reduction":  {append([]string{"all_reduce"}, slices.Repeat([]string{"broadcast"}, 30)...), 30},
		"of several kinds":               {append([]string{"all_reduce", "all_reduce"}, slices.Repeat([]string{"reduce", "gather", "scatter"}, 10)...), 30},
		"a reduction behind broadcasts":  {append(slices.Repeat([]string{"broadcast"}, 30), "all_reduce"), 8},
		"all are broadcasts":             {slices.Repeat([]string{"broadcast"}, 200), 8 + maxRooted},
		"members leave those together":   {slices.Repeat([]string{"all_reduce"}, 30), 8},
		"few":                            {slices.Repeat([]string{"broadcast"}, 5), 5},
		"a barrier between, and 20 more": {slices.Concat(slices.Repeat([]string{"broadcast"}, 9), []string{"barrier"}, slices.Repeat([]string{"broadcast"}, 20)), 20},
	} {
		t.Run(name, func(t *testing.T) {
			var ops []op
			for i, call := range c.calls {
				ops = append(ops, op{"0/w", 0, "nccl:" + call, int64(i + 1), 0, true})
			}
			s := stateFrom(t, dumpOf(0, ops...), StateOptions{})
			assert.Len(t, s.Ops, c.want)
			assert.Equal(t, int64(len(c.calls)), s.Ops[len(s.Ops)-1].Seq, "the newest are shown")
		})
	}
}
