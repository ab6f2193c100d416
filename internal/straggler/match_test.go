// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// joined returns an all-reduce on a communicator of four in which the members
// seen entered in order over spread ns, and the last of them stayed for stay ns.
func joined(comm string, seen int, spread, stay int64) *meeting {
	g := &gathering{kind: model.KindCollective}
	m := &meeting{gathering: g, rule: waitAll, last: seen - 1, arrived: spread, attributed: true}
	for i := range seen {
		g.parties = append(g.parties, party{op: &commOp{form: &commForm{
			commName: commName{kind: model.KindCollective, comm: comm, size: 4, collective: model.AllReduce},
		}}})
		m.enter = append(m.enter, spread*int64(i)/int64(seen-1))
		m.exit = append(m.exit, spread+stay)
	}
	return m
}

func TestWithdraw(t *testing.T) {
	usual := []*meeting{joined("a", 4, 20, 10), joined("a", 4, 20, 10), joined("a", 4, 20, 30)}
	for name, tc := range map[string]struct {
		others []*meeting
		m      *meeting
		keeps  bool
	}{
		"complete, however long":                 {nil, joined("a", 4, 20, 1000), true},
		"left as promptly as in complete ones":   {usual, joined("a", 3, 20, 10), true},
		"stayed longer than in complete ones":    {usual, joined("a", 3, 20, 11), false},
		"a longer stay on another communicator":  {usual, joined("b", 3, 20, 10), false},
		"left within a quarter of the spread":    {nil, joined("a", 3, 20, 5), true},
		"stayed for more than a quarter of it":   {nil, joined("a", 3, 20, 6), false},
		"the one missing may have been the last": {nil, joined("a", 2, 1, 500), false},
	} {
		t.Run(name, func(t *testing.T) {
			withdraw(append(tc.others, tc.m))
			assert.Equal(t, tc.keeps, tc.m.attributed)
		})
	}
}

func TestEqualCountsAreResynchronisedToo(t *testing.T) {
	w := newWorld(t, 4)
	for r := range int64(4) {
		first := int64(1)
		if r == 2 {
			first = 2 // its recording begins and ends one collective later
		}
		var ops []model.Op
		for n := range int64(4) {
			k := first + n
			ops = append(ops, collective(1, n, 1000*k, float64(10*k), float64(10*k+1)))
		}
		for i := range ops {
			ops[i].Comm.Size = model.Some(int64(4))
		}
		w.reports = append(w.reports, w.e.Add(w.rank(r), append(ops, stepOp(1, 0, 60)))...)
	}
	require.Len(t, w.reports, 1)
	meetings := w.reports[0].Meetings
	require.Len(t, meetings, 4)
	for _, m := range meetings {
		for _, x := range m.Members {
			assert.Equal(t, m.Members[0].Enter, x.Enter, "partners moved the same bytes at the same time")
		}
	}
	assert.Len(t, meetings[0].Members, 3, "rank 2 did not record the first")
	assert.Equal(t, 1, w.reports[0].Unmatched, "nor the others its last")
}

func TestDifferentCollectivesOfOneNumberDoNotMeet(t *testing.T) {
	w := newWorld(t, 2)
	for r := range int64(2) {
		c := collective(1, 0, 8, 0, 1)
		c.Collective.SeqScope = model.ScopeComm
		if r == 1 {
			c.Collective.Name = model.Broadcast
		}
		w.reports = append(w.reports, w.e.Add(w.rank(r), []model.Op{c, stepOp(1, 0, 1)})...)
	}
	assert.Empty(t, w.reports[0].Meetings)
	assert.Equal(t, 2, w.reports[0].Unmatched)
}

func TestFewStepsAreJudgedByTheirCollectives(t *testing.T) {
	w := newWorld(t, 8)
	for n := range int64(2) {
		w.step(n, each(8, "c10 * c10 * c10 * c10 *", map[int]program{5: "h4 c10 * h4 c10 * h4 c10 * h4 c10 *"})...)
	}
	w.e.Flush()
	vs := w.e.Verdicts()
	require.Len(t, vs, 1, "last in eight of eight")
	ev := evidenceOf(t, vs[0].Finding)
	assert.Equal(t, "meeting", ev.Trials)
	assert.Equal(t, "steps judged: 2, fewer than 3", ev.LoweredBy[0])
}

func TestAnOperationOfAnotherClockIsShiftedByIt(t *testing.T) {
	w := newWorld(t, 2)
	for n := range int64(8) {
		at := float64(n) * 100
		for r := range int64(2) {
			op := collective(n, 0, 8, at+10, at+11)
			if r == 1 {
				// A device whose clock is 30 ms behind; the host's is right.
				op.ClockID, op.Start, op.End = "gpu1", op.Start-30e6, op.End-30e6
			}
			w.reports = append(w.reports, w.e.Add(w.rank(r), []model.Op{op, stepOp(n, at, at+20)})...)
		}
	}
	m := w.reports[7].Meetings[0]
	require.Len(t, m.Members, 2)
	assert.InDelta(t, m.Members[0].Enter, m.Members[1].Enter, 1e5)
}
