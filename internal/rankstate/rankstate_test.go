// SPDX-License-Identifier: Apache-2.0

package rankstate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

func TestRoundTrip(t *testing.T) {
	var shared Decoder
	for seed := range uint64(1000) {
		want := randomState(t, seed, seed%2 == 1)
		b := Encode(&want)
		got, err := Decode(b)
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d", seed)
		again, err := shared.Decode(b)
		require.NoError(t, err)
		require.Equal(t, want, again, "seed %d", seed)
		require.True(t, bytes.Equal(b, Encode(&got)), "seed %d", seed)
	}
}

func TestTypicalSize(t *testing.T) {
	s := typicalState(4321, 16384)
	b := Encode(&s)
	assert.Less(t, len(b), 8<<10)
	got, err := Decode(b)
	require.NoError(t, err)
	assert.Equal(t, s, got)
}

func TestNothingKnown(t *testing.T) {
	got, err := Decode(Encode(&model.RankState{}))
	require.NoError(t, err)
	assert.Equal(t, model.RankState{}, got)
}

func TestMembers(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	random := make([]int64, 1000)
	for i := range random {
		random[i] = rng.Int64N(math.MaxInt32)
	}
	for name, tt := range map[string]struct {
		ranks []int64
		most  int // bytes
	}{
		"one":           {[]int64{5}, 4},
		"whole job":     {strided(0, 1, 131072), 8},
		"every eighth":  {strided(7, 8, 2048), 6},
		"backwards":     {strided(100, -1, 100), 6},
		"all the same":  {make([]int64, 9), 4},
		"two nodes":     {slices.Concat(strided(0, 1, 8), strided(80, 1, 8)), 8},
		"largest":       {[]int64{math.MaxInt32, 0, math.MaxInt32}, 20},
		"without order": {random, 12 * 1000},
	} {
		t.Run(name, func(t *testing.T) {
			b := appendMembers(nil, tt.ranks)
			assert.LessOrEqual(t, len(b), tt.most)
			r := reader{data: b, shared: &Decoder{}}
			assert.Equal(t, tt.ranks, r.members(MaxMembers))
			require.NoError(t, r.err)
			assert.Equal(t, len(b), r.at)
		})
	}
}

// States of one job have one list of one group, and none where it would have to be kept too
// long.
func TestMembersAreShared(t *testing.T) {
	var d Decoder
	var first model.RankState
	for rank := range int64(100) {
		s := typicalState(rank, 16384)
		got, err := d.Decode(Encode(&s))
		require.NoError(t, err)
		require.Equal(t, s, got)
		if rank == 0 {
			first = got
		}
		assert.Same(t, &first.Comms[0].Members[0], &got.Comms[0].Members[0])
	}
	for i := range int64(3 * maxShared / bytesOfRank / MaxMembers) {
		s := model.RankState{Comms: []model.CommState{{Members: strided(i, 1, MaxMembers)}}}
		_, err := d.Decode(Encode(&s))
		require.NoError(t, err)
		assert.LessOrEqual(t, d.lists.Bytes(), maxShared)
	}
}

// The shortest lists take far more memory than their ranks.
func TestDecoder_ShortLists_CountsAllTheMemoryThatTheyTake(t *testing.T) {
	const lists = 50_000
	var d Decoder
	before := heapInUse()
	for rank := range int64(lists) {
		form := appendMembers(nil, []int64{rank})
		d.list(form, func() []int64 { return []int64{rank} })
	}
	took := heapInUse() - before
	assert.LessOrEqual(t, took, d.lists.Bytes(), "bytes of %d lists", lists)
	runtime.KeepAlive(&d)
}

// heapInUse returns the bytes of all objects that are reachable.
func heapInUse() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestEncodeKeepsToLimits(t *testing.T) {
	long := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", 2*MaxString)) }
	tests := map[string]struct {
		state model.RankState
		want  func(t *testing.T, got model.RankState)
	}{
		"long words": {
			model.RankState{Name: strings.Repeat("x", MaxWord-1) + "é", Stacks: []string{long(1)}},
			func(t *testing.T, got model.RankState) {
				t.Helper()
				assert.Equal(t, strings.Repeat("x", MaxWord-1), got.Name)
				assert.Len(t, got.Stacks[0], MaxString)
			},
		},
		"too many stacks": {
			model.RankState{Comms: make([]model.CommState, 1), Stacks: many(100, long), Ops: []model.StateOp{{Kind: model.KindSend, Stack: 99}}},
			func(t *testing.T, got model.RankState) {
				t.Helper()
				assert.Empty(t, got.Stacks)
				assert.Len(t, got.Ops, 1)
				assert.Equal(t, "too large: call stacks left out", got.Partial)
			},
		},
		"operations that are over go first": {
			model.RankState{Comms: make([]model.CommState, 1), Ops: manyOps(MaxOps+10, 10, "")},
			func(t *testing.T, got model.RankState) {
				t.Helper()
				require.Len(t, got.Ops, MaxOps)
				assert.Equal(t, int64(10), got.Dropped)
				assert.False(t, got.Ops[0].Done)
				assert.Equal(t, int64(MaxOps+9), got.Ops[MaxOps-1].Seq)
			},
		},
		"open operations from the newest on": {
			model.RankState{Comms: make([]model.CommState, 1), Dropped: 5, Partial: "cut", Ops: manyOps(100, 0, long(1)[:MaxWord-10])},
			func(t *testing.T, got model.RankState) {
				t.Helper()
				require.NotEmpty(t, got.Ops)
				assert.Equal(t, int64(0), got.Ops[0].Seq)
				assert.Equal(t, int64(5+100-len(got.Ops)), got.Dropped)
				assert.Equal(t, "cut", got.Partial)
			},
		},
		"communicators": {
			model.RankState{Rank: model.Rank{Rank: 3}, Comms: manyComms(1000, long)},
			func(t *testing.T, got model.RankState) {
				t.Helper()
				assert.NotEmpty(t, got.Comms)
				assert.Less(t, len(got.Comms), 1000)
				assert.Equal(t, int64(3), got.Rank.Rank)
				assert.Equal(t, "too large: communicators left out", got.Partial)
			},
		},
		"members": {
			model.RankState{Comms: []model.CommState{{Members: make([]int64, MaxMembers)}, {Members: []int64{1}}}},
			func(t *testing.T, got model.RankState) {
				t.Helper()
				assert.Len(t, got.Comms[0].Members, MaxMembers)
				assert.Empty(t, got.Comms[1].Members)
				assert.Equal(t, "too large: members left out", got.Partial)
			},
		},
		"what can not be": {
			model.RankState{
				Silent: model.Some(math.NaN()), Comms: []model.CommState{{Members: []int64{1, -1}}},
				Ops: []model.StateOp{{Kind: "copy"}, {Kind: model.KindSend, Comm: 1}, {Kind: model.KindSend, Comm: -1}, {Kind: model.KindSend, Stack: 1, Timeout: model.Some(math.Inf(1))}},
			},
			func(t *testing.T, got model.RankState) {
				t.Helper()
				assert.False(t, got.Silent.OK)
				assert.Empty(t, got.Comms[0].Members)
				assert.Equal(t, []model.StateOp{{Kind: model.KindSend}}, got.Ops)
				assert.Equal(t, int64(3), got.Dropped)
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := Encode(&tt.state)
			assert.LessOrEqual(t, len(b), MaxBytes)
			got, err := Decode(b)
			require.NoError(t, err)
			tt.want(t, got)
		})
	}
}

func many(n int, of func(int) string) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = of(i)
	}
	return list
}

// manyOps are n operations, of which the first few are over.
func manyOps(n, over int, name string) []model.StateOp {
	ops := make([]model.StateOp, n)
	for i := range ops {
		ops[i] = model.StateOp{Kind: model.KindCollective, Seq: int64(i), Done: i < over}
		if name != "" {
			ops[i].Name = fmt.Sprint(i, name)
		}
	}
	return ops
}

func manyComms(n int, name func(int) string) []model.CommState {
	comms := make([]model.CommState, n)
	for i := range comms {
		comms[i].Comm.ID = name(i)
	}
	return comms
}

// The form as docs/format/rank-state.md has it, written by hand.
func TestFormAsSpecified(t *testing.T) {
	form := slices.Concat(
		[]byte("LRS\x01"),
		[]byte{1, 35, 5}, []byte("\x01j\x02TP\x0acollective\x0aall_reduce\x06main:7"),
		[]byte{2, 12, 14, 0, 1, 0, 0, 0, 0, 0, 0x81, 0x01, 2, 20},
		[]byte{3, 14, 2, 20, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0xbf, 0xa0, 0x03},
		[]byte{4, 21, 1, 1, 8, 2, 0, 0, 0, 0, 0, 5, 2, 4, 4, 9, 0, 1, 1, 4, 5, 82, 80},
		[]byte{5, 17, 1, 0x81, 0x28, 0x80, 0x01, 3, 4, 0, 0, 0, 0, 0, 0, 0, 82, 18, 1},
		[]byte{6, 2, 1, 5},
	)
	want := model.RankState{
		Rank: model.Rank{JobID: "j", Rank: 7, LocalRank: model.Some(int64(1)), PID: model.Some(int64(10))},
		Time: 10, LastEnqueue: 9, Silent: model.Some(0.25),
		Comms: []model.CommState{{
			Comm: model.Comm{ID: "TP", Size: model.Some(int64(4))}, Members: []int64{1, 3, 5, 7, 2},
			Frontiers: []model.Frontier{{Func: "all_reduce", Enqueued: model.Some(int64(41)), Completed: model.Some(int64(40))}},
		}},
		Ops:    []model.StateOp{{Kind: "collective", Name: "all_reduce", Seq: 41, Bytes: model.Some(int64(64)), Created: 9, Stack: 1}},
		Stacks: []string{"main:7"},
	}
	got, err := Decode(form)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	again, err := Decode(Encode(&want))
	require.NoError(t, err)
	assert.Equal(t, want, again)
}

// What a newer writer adds is passed over; another version is refused.
func TestVersions(t *testing.T) {
	s := typicalState(1, 128)
	b := Encode(&s)
	added := append(binary.AppendUvarint(slices.Clone(b), 900), 3, 'n', 'e', 'w')
	got, err := Decode(added)
	require.NoError(t, err)
	assert.Equal(t, s, got)

	b[len(magic)] = 2
	_, err = Decode(b)
	require.EqualError(t, err, "decode rank state: byte 0: got version 2; want 1")
}

func TestDecodeBadInput(t *testing.T) {
	section := func(tag byte, content ...byte) []byte { return append([]byte{tag, byte(len(content))}, content...) }
	form := func(sections ...[]byte) []byte { return append([]byte("LRS\x01"), slices.Concat(sections...)...) }
	texts := section(sectionStrings, 0)
	rank := section(sectionRank, make([]byte, 9)...)
	state := section(sectionState, make([]byte, 11)...)
	none := section(sectionComms, 0)
	comm := func(members ...byte) []byte {
		return form(texts, rank, state, section(sectionComms, slices.Concat([]byte{1, 0, 0, 0, 0, 0, 0, 0}, members, []byte{0})...))
	}
	_, err := Decode(form(texts, rank, state, none, section(sectionOps, 0), section(sectionStacks, 0)))
	require.NoError(t, err)
	overlong := append(bytes.Repeat([]byte{0x80}, 10), 2)
	ones := append(bytes.Repeat([]byte{0xff}, 9), 1)
	for want, b := range map[string][]byte{
		`byte 0: got no "LRS" and version`:                                             []byte("LR"),
		"byte 4: got no section 1":                                                     form(),
		"byte 31: got no section 4":                                                    form(texts, rank, state),
		"byte 0: got 1048577 bytes; want at most 1048576":                              make([]byte, MaxBytes+1),
		"byte 6: read length of a section: got 9; want at most 0":                      form([]byte{1, 9}),
		"byte 6: got section 0; want at least 1":                                       form(section(0)),
		"byte 9: got section 1 again or out of order":                                  form(texts, texts),
		"byte 7: got 1 bytes behind the end of section 1":                              form(section(1, 0, 0)),
		"byte 9: read length of a string: got 200; want at most 1":                     form(section(1, 1, 200, 1, 0)),
		"byte 11: read string: got place 1 in a table of 1":                            form(texts, section(sectionRank, 0, 1)),
		"byte 10: read rank: got -1; want 0 to 2147483647":                             form(texts, section(sectionRank, 1)),
		"byte 19: read flags: got 0x200; want less than 0x200":                         form(texts, section(sectionRank, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 4)),
		"byte 34: read number of communicators: got 9; want at most 1":                 form(texts, rank, state, section(sectionComms, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
		"byte 44: read number of members: got 1048577; want at most 1048576":           comm(0x81, 0x80, 0x40),
		"byte 45: read members: got ranks 0 to -4; want 0 to 2147483647":               comm(5, 0, 1, 5),
		"byte 45: read members: got a run of no ranks":                                 comm(5, 0, 1, 0),
		"byte 45: read number of ranks of a run: got 6; want at most 5":                comm(5, 0, 1, 6),
		`byte 46: read operation: got kind ""; want a collective, a send or a receive`: form(texts, rank, state, none, section(sectionOps, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
		"byte 37: read number of operations: got 2; want at most 1":                    form(texts, rank, state, none, section(sectionOps, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)),
		"byte 36: read number: got none in 0 bytes":                                    form(texts, rank, state, none, section(sectionOps)),
		"byte 41: read number: got NaN; want a finite one":                             form(texts, rank, section(sectionState, slices.Concat([]byte{2}, make([]byte, 10), ones)...)),
		"byte 33: read number: got none in 11 bytes":                                   form(texts, rank, state, section(sectionComms, overlong...)),
	} {
		_, err := Decode(b)
		assert.EqualError(t, err, "decode rank state: "+want)
	}
}

// References that Encode does not write are refused.
func TestDecodeReferences(t *testing.T) {
	for want, op := range map[string]model.StateOp{
		"read operation: got place 1 of 1 communicators": {Kind: model.KindSend, Comm: 1},
		"read operation: got call stack 2 of 1":          {Kind: model.KindSend, Stack: 2},
	} {
		b, ok := encode(&model.RankState{Comms: make([]model.CommState, 1), Stacks: []string{"f"}, Ops: []model.StateOp{op}})
		require.True(t, ok)
		_, err := Decode(b)
		assert.ErrorContains(t, err, want)
	}
}

// No damage crashes a reader or makes it hold more than the limits allow.
func TestDecodeDamaged(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	s := typicalState(9, 128)
	whole := Encode(&s)
	for n := range len(whole) {
		_, err := Decode(whole[:n])
		require.Error(t, err, "the first %d bytes of %d", n, len(whole))
	}
	for range tier.N(t, 4000, 20000) {
		b := slices.Clone(whole)
		for range 1 + rng.IntN(4) {
			b[rng.IntN(len(b))] = byte(rng.Uint64())
		}
		checkDecode(t, b)
	}
}

// checkDecode decodes b: what can be read can be written and read again.
func checkDecode(t *testing.T, b []byte) {
	t.Helper()
	got, err := Decode(b)
	if err != nil {
		return
	}
	members := 0
	for i := range got.Comms {
		members += len(got.Comms[i].Members)
	}
	require.LessOrEqual(t, members, MaxMembers)
	for i := range got.Ops {
		require.Less(t, got.Ops[i].Comm, len(got.Comms))
		require.LessOrEqual(t, got.Ops[i].Stack, len(got.Stacks))
	}
	_, err = Decode(Encode(&got))
	require.NoError(t, err)
}

func FuzzDecode(f *testing.F) {
	for _, s := range []model.RankState{{}, typicalState(3, 128)} {
		f.Add(Encode(&s))
	}
	f.Add([]byte("LRS\x01"))
	f.Fuzz(checkDecode)
}

// What is decoded into the room of another state is the same as what is decoded into none.
func TestDecodeToUsesRoomAgain(t *testing.T) {
	var d Decoder
	var again model.RankState
	for seed := range uint64(500) {
		want := randomState(t, seed, seed%2 == 1)
		b := Encode(&want)
		if seed%7 == 0 { // an error in between leaves nothing behind
			require.Error(t, d.DecodeTo(b[:len(b)-1], &again))
			assert.Empty(t, again.Ops)
			assert.Empty(t, again.Rank)
		}
		require.NoError(t, d.DecodeTo(b, &again))
		assert.Equal(t, b, Encode(&again), "seed %d", seed)
	}
	typical := typicalState(4321, 16384)
	b := Encode(&typical)
	require.NoError(t, d.DecodeTo(b, &again))
	const texts = 1 // all strings are parts of one, which is new
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { _ = d.DecodeTo(b, &again) }), float64(texts))
}

// A state that is kept must not keep strings that none of its texts is: they are parts of one string.
func TestDecode_UnusedStrings_AreNotKept(t *testing.T) {
	const states = 32
	want := typicalState(1, 64)
	form := Encode(&want)
	junk := strings.Repeat("x", MaxString)
	for range 14 {
		form = withString(t, form, junk)
	}
	before, kept := heap(), make([]model.RankState, states)
	for i := range kept {
		s, err := Decode(form)
		require.NoError(t, err)
		kept[i] = s
	}
	assert.Less(t, heap()-before, int64(states*64<<10), "the form has 14 times as much that is not used")
	assert.Equal(t, Encode(&want), Encode(&kept[0]))
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// withString adds a string to the table, at its end.
func withString(t *testing.T, form []byte, s string) []byte {
	t.Helper()
	head, rest := form[:len(magic)+2], form[len(magic)+2:]
	size, n := binary.Uvarint(rest)
	table, rest := rest[n:n+int(size)], rest[n+int(size):]
	count, n := binary.Uvarint(table)
	added := binary.AppendUvarint(nil, count+1)
	added = append(added, table[n:]...)
	added = append(binary.AppendUvarint(added, uint64(len(s))), s...)
	out := binary.AppendUvarint(slices.Clone(head), uint64(len(added)))
	return append(append(out, added...), rest...)
}
