// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const tiny = 1e-9

// Three ranks compute 10 ms, one of them 30, and reduce for 1.
func lateRank() *hand {
	h := newHand(4, 31)
	for r, end := range []float64{10, 10, 30, 10} {
		h.op(r, Compute, gemm, 0, end)
	}
	for r, start := range []float64{10, 10, 30, 10} {
		h.op(r, Comm, reduce, start, 31)
	}
	h.meet(All, 0, 1, 2, 3)
	return h
}

func TestWalkGoesToTheLastArriver(t *testing.T) {
	g := lateRank().build()
	w := g.Walk()
	require.Len(t, w.Path, 2)
	assert.Equal(t, Link, w.Path[0].Kind)
	assert.Equal(t, [2]int64{at(30), at(31)}, [2]int64{w.Path[0].From, w.Path[0].To})
	assert.Equal(t, Compute, w.Path[1].Kind)
	assert.Equal(t, int64(2), w.Path[1].Rank)
	assert.Equal(t, gemm, w.Path[1].Place)
	c := w.Causes[0]
	assert.InDelta(t, 0.020, c.Excess, tiny)
	assert.InDelta(t, 30.0/31, c.Share, tiny)
	assert.InDelta(t, 0.020, g.Saved(c.Mend()), tiny)
	assert.Zero(t, g.Saved(), "nothing mended, nothing saved")
}

// The collective runs on a stream of its own, which was idle: only the operation that
// ended last on the rank says that it was computing and not its host.
func TestLastFinishingOperationExplainsACollective(t *testing.T) {
	w := lateRank().build().Walk()
	assert.Zero(t, seconds(w, 2, Host))
	assert.InDelta(t, 0.030, seconds(w, 2, Compute), tiny)
}

func TestStreamOrder(t *testing.T) {
	h := newHand(3, 20)
	for r, first := range []float64{5, 5, 15} {
		h.op(r, Compute, gemm, 0, first)
		h.op(r, Compute, norm, first, first+5)
		h.Ranks[r].End = at(first + 5)
	}
	g := h.build()
	w := g.Walk()
	assert.Equal(t, int64(2), w.Causes[0].Rank)
	assert.Equal(t, gemm, w.Causes[0].Place)
	assert.InDelta(t, 0.010, g.Saved(w.Causes[0].Mend()), tiny)
}

// A collective ends by chance just before a kernel begins: that one waited for its stream.
func TestStreamOrderComesBeforeChance(t *testing.T) {
	h := newHand(3, 0)
	for r, first := range []float64{5, 5, 15} {
		h.op(r, Compute, gemm, 0, first)
		h.op(r, Comm, reduce, 0, first+0.001)
		h.op(r, Compute, norm, first+0.003, first+25)
		h.Ranks[r].End = at(first + 25)
	}
	assert.InDelta(t, 0.010, h.build().Saved(Mend{Rank: 2, Kind: Compute, Peer: -1}), tiny)
}

// Two operations that run side by side on one stream keep their order.
func TestOverlapOnOneStream(t *testing.T) {
	h := newHand(3, 0)
	for r, slow := range []float64{2, 2, 14} {
		h.op(r, Compute, gemm, 0, slow)
		h.Ranks[r].End = at(slow)
	}
	h.op(2, Copy, loading, 0, 10).Lane = 8
	h.op(2, Comm, reduce, 10.1, 30)
	h.op(2, Comm, reduce, 15, 40)
	h.Ranks[2].End = at(40)
	assert.Zero(t, h.build().Saved(Mend{Rank: 2, Kind: Compute, Peer: -1}))
}

// A step ends when all of its streams have.
func TestStepEndsWithItsLastStream(t *testing.T) {
	h := newHand(3, 0)
	for r, slow := range []float64{5, 5, 20} {
		h.op(r, Compute, gemm, 0, slow)
		h.Ranks[r].End = at(slow)
	}
	h.op(2, Copy, loading, 0, 19).Lane = 8
	assert.InDelta(t, 0.001, h.build().Saved(Mend{Rank: 2, Kind: Compute, Peer: -1}), tiny)
}

// A sender whose message was taken at once is not earlier if its receiver is.
func TestBufferedSendWaitsForNobody(t *testing.T) {
	h := newHand(3, 0)
	h.op(0, Comm, message, 2, 3)
	h.op(0, Compute, norm, 3, 40)
	h.op(1, Compute, gemm, 0, 30)
	h.op(1, Comm, message, 30, 31)
	h.meet(Message, 0, 1)
	h.Meetings[0].Parties[0].Op = 0
	h.op(2, Compute, gemm, 0, 10)
	h.Ranks[0].End, h.Ranks[1].End, h.Ranks[2].End = at(40), at(31), at(10)
	assert.Zero(t, h.build().Saved(Mend{Rank: 1, Kind: Compute, Peer: -1}))
}

// Between two operations of a stream the device was idle for 10 ms.
func gapBefore(launch float64) (*hand, *Op) {
	h := newHand(3, 0)
	var last *Op
	for r, wait := range []float64{0, 0, 10} {
		h.op(r, Compute, gemm, 0, 5)
		last = h.op(r, Compute, norm, 5+wait, 10+wait)
		last.Launch = at(launch)
		h.Ranks[r].End = at(10 + wait)
	}
	return h, last
}

func TestLaunchTellsTheHostFromTheDevice(t *testing.T) {
	h, last := gapBefore(1)
	last.Launch = at(15) - 10*us
	g := h.build()
	w := g.Walk()
	assert.InDelta(t, 0.010, seconds(w, 2, Host), tiny)
	assert.Zero(t, seconds(w, 2, Dependency))
	assert.InDelta(t, 0.010, g.Saved(Mend{Rank: 2, Kind: Host, Peer: -1}), tiny)

	h, _ = gapBefore(1)
	w = h.build().Walk()
	assert.Zero(t, seconds(w, 2, Host), "it had been launched")
	assert.InDelta(t, 0.010, seconds(w, 2, Dependency), tiny)
}

// A stream stands still while another one computes: the host launched late, but not
// since it was slow.
func TestGapIsTheHostsOnlyWhereNoStreamRan(t *testing.T) {
	h, last := gapBefore(1)
	last.Launch = at(15) - 10*us
	side := h.op(2, Compute, reduce, 4, 16)
	side.Lane = 8
	h.Ranks[2].End = at(20)
	w := h.build().Walk()
	assert.Zero(t, seconds(w, 2, Host))
	assert.Positive(t, seconds(w, 2, Compute))
}

// A host that is behind its device all the time gains nothing by a faster device.
func TestHostOrder(t *testing.T) {
	h := newHand(3, 40)
	for r, slow := range []float64{1, 1, 4} {
		for k := range 4 {
			begin := float64(10 * k)
			h.op(r, Compute, gemm, begin, begin+slow).Launch = at(begin) - 5*us
		}
		h.Ranks[r].End = at(40)
	}
	for r := range h.Ranks {
		h.Ranks[r].Start = at(-10)
	}
	h.Ranks[2].End = at(34)
	h.Ranks[0].End, h.Ranks[1].End = at(31), at(31)
	g := h.build()
	assert.InDelta(t, 0.003, g.Saved(Mend{Rank: 2, Kind: Compute, Peer: -1}), tiny,
		"the last one only: each of the others has been launched when it was")
}

// The same, with a host that launches when its device has ended.
func TestSynchronisation(t *testing.T) {
	h := newHand(3, 0)
	for r, slow := range []float64{1, 1, 4} {
		begin := 0.0
		for range 4 {
			h.op(r, Compute, gemm, begin, begin+slow).Launch = at(begin) - 5*us
			begin += slow + 0.02
		}
		h.Ranks[r].End = at(begin)
	}
	g := h.build()
	assert.InDelta(t, 0.012, g.Saved(Mend{Rank: 2, Kind: Compute, Peer: -1}), tiny)
}

// A host that waits for its device, and then thinks for a while, is seen to wait.
func TestExplicitSynchronisation(t *testing.T) {
	for _, seen := range []bool{false, true} {
		h := newHand(3, 0)
		for r, slow := range []float64{1, 1, 4} {
			h.op(r, Compute, gemm, 1, 1+slow)
			h.op(r, Compute, norm, 3+slow, 4+slow).Launch = at(3+slow) - 5*us
			if seen {
				h.Ranks[r].Syncs = []int64{at(1+slow) + 10*us}
			}
			h.Ranks[r].End = at(4 + slow)
		}
		want := 0.0
		if seen {
			want = 0.003
		}
		assert.InDelta(t, want, h.build().Saved(Mend{Rank: 2, Kind: Compute, Peer: -1}), 1e-6)
	}
}

func TestReceiverWaitsForItsSender(t *testing.T) {
	h := newHand(2, 31)
	h.op(0, Compute, gemm, 0, 30)
	h.op(0, Comm, message, 30, 31)
	h.op(1, Comm, message, 0, 31)
	h.meet(Message, 0, 1)
	h.op(1, Compute, gemm, 31, 36)
	h.Ranks[1].End = at(36)
	g := h.build()
	w := g.Walk()
	assert.InDelta(t, 0.030, seconds(w, 0, Compute), tiny)
	assert.InDelta(t, 0.005, seconds(w, 1, Compute), tiny)
	assert.InDelta(t, 0.025, g.Saved(Mend{Rank: 0, Kind: Compute, Peer: -1}), tiny, "rank 1 needs 5 ms for the same kernel")
}

// A sender that stayed until the receiver came waited for it.
func TestSenderWaitsForItsReceiver(t *testing.T) {
	h := newHand(2, 31)
	h.op(0, Comm, message, 2, 31)
	h.op(1, Compute, gemm, 0, 30)
	h.op(1, Comm, message, 30, 31)
	h.meet(Message, 0, 1)
	h.op(0, Compute, norm, 31, 40)
	h.Ranks[0].End = at(40)
	w := h.build().Walk()
	assert.InDelta(t, 0.030, seconds(w, 1, Compute), tiny)

	// One that did not, and whose buffer was taken, did not wait.
	h.Ranks[0].Ops[0].End = at(3)
	w = h.build().Walk()
	assert.Zero(t, seconds(w, 1, Compute))
}

func TestLeavesWaitForTheRoot(t *testing.T) {
	h := newHand(3, 21)
	for r, end := range []float64{20, 5, 5} {
		h.op(r, Compute, gemm, 0, end)
	}
	h.op(0, Comm, reduce, 20, 20.5)
	h.op(1, Comm, reduce, 5, 21)
	h.op(2, Comm, reduce, 5, 21)
	h.meet(Root, 0, 1, 2)
	g := h.build()
	w := g.Walk()
	assert.Equal(t, int64(0), w.Causes[0].Rank)
	assert.InDelta(t, 0.015, g.Saved(w.Causes[0].Mend()), tiny)
}

// What one rank is seen to wait for, its peers wait for too: rank 2, mended, waits for
// the message that it had not to wait for before.
func TestPeersTellWhatAnOperationWaitsFor(t *testing.T) {
	h := newHand(4, 0)
	for r, slow := range []float64{2, 2, 20} {
		h.op(r, Compute, gemm, 0, slow)
		h.op(r, Comm, message, 0, 10)
		begin := max(slow, 10) + 0.005
		h.op(r, Compute, norm, begin, begin+5)
		h.Ranks[r].End = at(begin + 5)
	}
	h.op(2, Compute, loading, 25.005, 45)
	h.Ranks[2].End = at(45)
	g := h.build()
	assert.InDelta(t, 0.010, g.Saved(Mend{Rank: 2, Kind: Compute, Peer: -1}), tiny)
}

// The same where nobody is alike, and the source tells the microbatch.
func TestMicrobatchTellsWhatAnOperationWaitsFor(t *testing.T) {
	h := newHand(2, 0)
	h.op(0, Comm, message, 1, 10)
	h.op(1, Compute, gemm, 0, 20)
	h.op(1, Comm, message, 0, 10).Micro = 3
	h.meet(Message, 0, 1)
	h.op(1, Compute, norm, 20, 25).Micro = 3
	h.op(0, Compute, gemm, 10, 12)
	h.Ranks[0].End, h.Ranks[1].End = at(12), at(25)
	g := h.build()
	assert.InDelta(t, 0.010, g.Saved(Mend{Rank: 1, Kind: Compute, Peer: -1}), tiny)
}

// The same by the order of launches: what is computed next was received before.
func TestLaunchesTellWhatAnOperationWaitsFor(t *testing.T) {
	h := newHand(2, 0)
	h.op(0, Comm, message, 1, 10)
	h.op(1, Compute, gemm, 0, 20).Launch = at(-3)
	h.op(1, Comm, message, 0, 10).Launch = at(-2)
	h.meet(Message, 0, 1)
	h.op(1, Compute, norm, 20, 25).Launch = at(-1)
	h.op(0, Compute, gemm, 10, 12)
	h.Ranks[0].End, h.Ranks[1].End = at(12), at(25)
	assert.InDelta(t, 0.010, h.build().Saved(Mend{Rank: 1, Kind: Compute, Peer: -1}), tiny)
}

// Where only communication was recorded, what was launched and has not begun waits for
// work.
func TestDarkRanks(t *testing.T) {
	h := lateRank()
	for r := range h.Ranks {
		h.Ranks[r].Ops = h.Ranks[r].Ops[1:]
		h.Ranks[r].Dark = true
		h.Meetings[0].Parties[r].Op = 0
	}
	g := h.build()
	w := g.Walk()
	assert.Equal(t, int64(2), w.Causes[0].Rank)
	assert.Equal(t, Compute, w.Causes[0].Kind)
	assert.InDelta(t, 0.020, w.Causes[0].Excess, 1e-4)
	assert.InDelta(t, 0.020, g.Saved(w.Causes[0].Mend()), 1e-4)
}

func TestSlowTransferIsALink(t *testing.T) {
	h := newHand(4, 0)
	end := 0.0
	for _, transfer := range []float64{1, 1, 6, 1} {
		for r := range 4 {
			h.op(r, Compute, gemm, end, end+5)
			h.op(r, Comm, reduce, end+5, end+5+transfer)
		}
		h.meet(All, 0, 1, 2, 3).Class = 1
		end += 5 + transfer
	}
	for r := range h.Ranks {
		h.Ranks[r].End = at(end)
	}
	g := h.build()
	w := g.Walk()
	c := w.Causes[0]
	assert.Equal(t, Link, c.Kind)
	assert.Equal(t, int64(-1), c.Rank, "of a group's transfer no rank is known")
	assert.InDelta(t, 0.005, c.Excess, tiny)
	assert.InDelta(t, 0.005, g.Saved(c.Mend()), tiny)
}

func TestSlowLinkOfMessages(t *testing.T) {
	h := newHand(8, 0)
	for k := range 4 {
		transfer := 1.0
		if k == 2 {
			transfer = 9
		}
		s, r := 2*k, 2*k+1
		h.op(s, Compute, gemm, 0, 5)
		h.op(s, Comm, message, 5, 5+transfer)
		h.op(r, Comm, message, 0, 5+transfer)
		h.meet(Message, s, r)
		h.Ranks[s].End, h.Ranks[r].End = at(5+transfer), at(5+transfer)
	}
	g := h.build()
	w := g.Walk()
	c := w.Causes[0]
	assert.Equal(t, Link, c.Kind)
	assert.Equal(t, [2]int64{4, 5}, [2]int64{c.Rank, c.Peer})
	assert.InDelta(t, 0.008, g.Saved(c.Mend()), tiny)
	h.Meetings[2].Vague = span(10)
	w = h.build().Walk()
	for _, c := range w.Causes {
		assert.LessOrEqual(t, c.Excess, 0.0, "two clocks are that far apart: %+v", c)
	}
}

func TestTwoCulprits(t *testing.T) {
	h := newHand(4, 0)
	first, second := []float64{10, 10, 30, 10}, []float64{10, 25, 10, 10}
	for r := range 4 {
		h.op(r, Compute, gemm, 0, first[r])
		h.op(r, Comm, reduce, first[r], 31)
	}
	h.meet(All, 0, 1, 2, 3)
	for r := range 4 {
		h.op(r, Compute, norm, 31, 31+second[r])
		h.op(r, Comm, reduce, 31+second[r], 57)
		h.Ranks[r].End = at(57)
	}
	h.meet(All, 0, 1, 2, 3)
	g := h.build()
	w := g.Walk()
	assert.Equal(t, [2]int64{2, 1}, [2]int64{w.Causes[0].Rank, w.Causes[1].Rank})
	assert.InDelta(t, 0.020, g.Saved(w.Causes[0].Mend()), tiny)
	assert.InDelta(t, 0.015, g.Saved(w.Causes[1].Mend()), tiny)
	assert.InDelta(t, 0.035, g.Saved(w.Causes[0].Mend(), w.Causes[1].Mend()), tiny)
}

// A clock that is off sends the walk to the wrong rank; nobody is accused by that.
func TestClocksAccuseNobody(t *testing.T) {
	for off := -8.0; off <= 8; off += 0.5 {
		h := lateRank()
		for k := range h.Ranks[1].Ops {
			op := &h.Ranks[1].Ops[k]
			op.Start, op.End, op.Launch = op.Start+span(off), op.End+span(off), op.Launch+span(off)
		}
		h.Ranks[1].Start += span(off)
		h.Ranks[1].End += span(off)
		for _, c := range h.build().Walk().Causes {
			assert.False(t, c.Excess > 1e-6 && c.Rank != 2, "clock off by %v ms: %+v", off, c)
		}
	}
}

// Where the order of arrivals is not known, who stayed least waited for nobody.
func TestVagueArrivals(t *testing.T) {
	h := newHand(2, 31)
	h.op(0, Compute, gemm, 0, 29)
	h.op(1, Compute, gemm, 1, 11)
	h.op(0, Comm, reduce, 29, 31)
	h.op(1, Comm, reduce, 30, 52) // its clock is 20 ms ahead
	h.Ranks[1].End = at(31)
	m := h.meet(All, 0, 1)
	m.Vague = span(25)
	g := h.build()
	assert.Equal(t, int32(0), g.meets[0].last)
}

func TestMissingPartners(t *testing.T) {
	h := lateRank()
	h.Meetings[0].Rule = Nobody
	w := h.build().Walk()
	for _, c := range w.Causes {
		if c.Rank != 2 {
			assert.LessOrEqual(t, c.Excess, 0.0, "%+v", c)
		}
	}
	assert.Positive(t, seconds(w, w.Path[0].Rank, Unknown))
}

func TestTooManyOperations(t *testing.T) {
	h := lateRank()
	g := Build(&h.Step, Options{MaxOps: 5})
	assert.True(t, g.Refused)
	assert.Empty(t, g.Walk().Path)
	assert.Zero(t, g.Saved(Mend{Rank: 2}))
}

// Two meetings that each of two ranks saw in another order make a circle.
func TestCirclesEnd(t *testing.T) {
	h := newHand(2, 20)
	h.op(0, Comm, reduce, 0, 5)
	h.op(1, Comm, message, 0, 5)
	h.op(0, Comm, message, 6, 20)
	h.op(1, Comm, reduce, 6, 20)
	h.Meetings = []Meeting{
		{Parties: []Party{{0, 0}, {1, 1}}, Rule: All},
		{Parties: []Party{{0, 1}, {1, 0}}, Rule: All},
	}
	g := h.build()
	w := g.Walk()
	assert.True(t, w.Circular)
	assert.Positive(t, g.Forced())
	assert.Zero(t, g.Saved())
}

// reduced is a step of ranks that compute for so long each, and then reduce for 1 ms.
func reduced(places []Place, took ...float64) *hand {
	last := slices.Max(took)
	h := newHand(len(took), last+1)
	ranks := make([]int, len(took))
	for r, x := range took {
		h.op(r, Compute, places[r%len(places)], 0, x)
		h.op(r, Comm, reduce, x, last+1)
		ranks[r] = r
	}
	h.meet(All, ranks...)
	return h
}

func TestWorkIsSharedEvenly(t *testing.T) {
	h := reduced([]Place{gemm, norm}, 10, 20, 30, 40)
	one := func(Place) Place { return gemm }
	assert.InDelta(t, 0.015, h.build().Saved(Mend{Kind: Work, Alike: one}), tiny, "25 are the mean")
	own := func(p Place) Place { return p }
	assert.InDelta(t, 0.010, h.build().Saved(Mend{Kind: Work, Alike: own}), tiny, "30 are the mean of 20 and 40")
}

// What most others did not run is held against what they ran for the same.
func TestAnotherKernelForTheSame(t *testing.T) {
	const other = message + 100
	opt := Options{Alike: func(p Place) Place {
		if p == other {
			return gemm
		}
		return p
	}}
	step := func(more int, chosen ...int) *hand {
		h := newHand(5, 31)
		for r := range 5 {
			end := 22.0
			h.op(r, Compute, gemm, 0, 10)
			if slices.Contains(chosen, r) {
				end = 30
				for k := range more {
					h.op(r, Compute, other, 10+float64(20*k/more), 10+float64(20*(k+1)/more))
				}
			} else {
				h.op(r, Compute, gemm, 10, end)
			}
			h.op(r, Comm, reduce, end, 31)
		}
		h.meet(All, 0, 1, 2, 3, 4)
		return h
	}
	saved := func(h *hand, opt Options, ranks ...int64) float64 {
		var mends []Mend
		for _, r := range ranks {
			mends = append(mends, Own(r)...)
		}
		return Build(&h.Step, opt).Saved(mends...)
	}
	assert.InDelta(t, 0.008, saved(step(1, 2), opt, 2), tiny)
	assert.Zero(t, saved(step(1, 2), Options{}, 2), "nobody says that it is for the same")
	assert.Zero(t, saved(step(2, 2), opt, 2), "who does it more often has more to do")
	assert.InDelta(t, 0.008, saved(step(1, 1, 2), opt, 1, 2), tiny, "both have the same other one")
	assert.Zero(t, saved(step(1, 0, 1, 2), opt, 0, 1, 2), "most have it")
	w := Build(&step(1, 2).Step, opt).Walk()
	require.NotEmpty(t, w.Causes)
	assert.Equal(t, int64(2), w.Causes[0].Rank)
	assert.InDelta(t, 0.008, w.Causes[0].Excess, tiny)
}

func TestWorkThatKernelsDifferByStays(t *testing.T) {
	h := reduced([]Place{gemm}, 40, 40.2, 40.4, 41)
	assert.Zero(t, h.build().Saved(Mend{Kind: Work, Alike: func(p Place) Place { return p }}))
}

func TestATransferIsShortened(t *testing.T) {
	h := reduced([]Place{gemm}, 10, 10)
	assert.InDelta(t, 0.0004, h.build().Saved(Mend{Kind: Link, Less: map[int32]int64{0: 4e5, 7: 1e6}}), tiny)
}

func TestAllHostsAreMended(t *testing.T) {
	h := reduced([]Place{gemm}, 10, 10, 10, 10)
	for r, late := range []float64{0, 3, 0, 5} {
		op := &h.Ranks[r].Ops[0]
		op.Launch, op.Start = at(late), at(late)
	}
	assert.Zero(t, h.build().Saved(Mend{Rank: -1, Peer: -1, Kind: Host}), "who began late took less for it")
	for r, late := range []float64{0, 3, 0, 5} {
		op, reduction := &h.Ranks[r].Ops[0], &h.Ranks[r].Ops[1]
		op.End, reduction.Start, reduction.End = at(5+late), at(5+late), at(11)
	}
	assert.InDelta(t, 0.005, h.build().Saved(Mend{Rank: -1, Peer: -1, Kind: Host}), 1e-4)
}

// Rank 2 computes late since what it waited for of rank 1 was lost: it holds nothing up
// that rank 1 would gain.
func TestALostWaitHoldsNothing(t *testing.T) {
	for name, lost := range map[string]bool{"recorded": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			h := newHand(4, 31)
			for r := range 4 {
				begin := 10.0
				if r == 1 {
					h.op(r, Compute, gemm, 0, 20)
					begin = 20
				} else {
					h.op(r, Compute, gemm, 0, 10)
				}
				if r == 2 {
					begin = 20
				}
				h.op(r, Compute, norm, begin, begin+10)
				h.op(r, Comm, reduce, begin+10, 31)
			}
			h.meet(All, 0, 1, 2, 3)
			if lost {
				h.Ranks[2].Holes = [][2]int64{{at(10), at(20)}}
			}
			g := h.build()
			assert.Equal(t, lost, g.Holed())
			want := 0.0
			if lost {
				want = 0.010
			}
			assert.InDelta(t, want, g.Saved(Mend{Rank: 1, Kind: Compute, Peer: -1}), 1e-4)
		})
	}
}
