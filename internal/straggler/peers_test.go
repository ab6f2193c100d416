// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/judge"
)

// pipeline feeds an engine with replicas of a pipeline of two stages. In each step
// the first computes and sends twice, the second receives and computes; then all of a
// stage meet. Times are in ms.
type pipeline struct {
	*world
	replicas int64
	named    bool                            // the stages are
	work     func(rank, n int64) float64     // of each microbatch
	lose     func(rank, n int64, k int) bool // the k-th communication of a rank is not recorded
}

func (p *pipeline) rankOf(r int64) model.Rank {
	rank := p.rank(r)
	if p.named {
		rank.Parallel.PP = model.Some(r / p.replicas)
	}
	return rank
}

func (p *pipeline) step(n int64) {
	const microbatches = 2
	begin := float64(n) * 1000
	size := p.replicas
	ops := map[int64][]model.Op{}
	at := map[int64]float64{}
	count := map[int64]int{}
	add := func(r int64, op model.Op) {
		op.Step = model.Some(n)
		if op.Kind.IsComm() {
			count[r]++
			if p.lose != nil && p.lose(r, n, count[r]-1) {
				return
			}
		}
		ops[r] = append(ops[r], op)
	}
	message := func(kind model.OpKind, peer, k int64, from, to float64) model.Op {
		return model.Op{
			Kind: kind, Name: string(kind), Seq: k, Start: nanos(from), End: nanos(to), Peer: model.Some(peer), Comm: model.Comm{ID: "pp"},
			Collective: model.Collective{Seq: model.Some(microbatches*n + k), SeqScope: model.ScopeCommFunc},
		}
	}
	compute := func(r, k int64) {
		d := p.work(r, n)
		add(r, model.Op{Kind: model.KindCompute, Name: "gemm", Seq: k, Start: nanos(at[r]), End: nanos(at[r] + d)})
		at[r] += d
	}
	for r := range 2 * size {
		at[r] = begin
	}
	for r := range size {
		next := r + size
		for k := range int64(microbatches) {
			compute(r, k)
			from := at[next]
			sent := at[r]
			at[r]++
			at[next] = max(at[next], sent) + 1
			add(r, message(model.KindSend, next, k, sent, at[r]))
			add(next, message(model.KindRecv, r, k, from, at[next]))
			compute(next, k)
		}
	}
	for stage := range int64(2) {
		last := 0.0
		for i := range size {
			last = max(last, at[stage*size+i])
		}
		for i := range size {
			r := stage*size + i
			all := collective(n, 0, 8, at[r], last+1)
			all.Comm = model.Comm{ID: "dp" + string(rune('0'+stage)), Size: model.Some(size), Rank: model.Some(i)}
			add(r, all)
			at[r] = last + 1
		}
	}
	for r := range 2 * size {
		p.reports = append(p.reports, p.e.Add(p.rankOf(r), append(ops[r], stepOp(n, begin, at[r])))...)
	}
}

func newPipeline(t *testing.T, replicas int64) *pipeline {
	t.Helper()
	p := &pipeline{world: newWorld(t, int(2*replicas)), replicas: replicas, work: func(int64, int64) float64 { return 10 }}
	p.clock = "host"
	return p
}

func (p *pipeline) window() []*record { return p.e.sorted()[0].window }

func TestSegmentsOfAPipelineHavePeers(t *testing.T) {
	p := newPipeline(t, 4)
	p.work = func(r, _ int64) float64 {
		if r == 1 {
			return 15
		}
		return 10
	}
	for n := range int64(3) {
		p.step(n)
	}
	rec := p.window()[2]
	sends := 0
	for _, mr := range rec.meets {
		if mr.rule != waitForSender {
			continue
		}
		sends++
		from := mr.members[mr.last]
		require.True(t, from.weighed, "rank %d", mr.ranks[mr.last])
		want := int64(0)
		if mr.ranks[mr.last] == 1 {
			want = 5e6
		}
		assert.Equal(t, want, from.excess.compute, "rank %d", mr.ranks[mr.last])
	}
	assert.Equal(t, 8, sends)
	// Of two microbatches the first is late by 5 ms and the second by 10.
	saved := replay(p.window()[1:], mending{ranks: map[int64]bool{1: true}})
	assert.InDelta(t, 20e6, saved, 1e3, "two steps of two microbatches")
	assert.Zero(t, replay(p.window()[1:], mending{ranks: map[int64]bool{2: true}}))
}

func TestLostSpansChangeNoRole(t *testing.T) {
	p := newPipeline(t, 4)
	p.lose = func(r, n int64, k int) bool { return n > 0 && (r+n+int64(k))%5 == 0 }
	for n := range int64(6) {
		p.step(n)
	}
	for _, rec := range p.window() {
		for i, r := range rec.ranks {
			assert.Equal(t, rec.ranks[i/4*4].role, r.role, "step %d rank %d", rec.step, i)
		}
		assert.NotEqual(t, rec.ranks[0].role, rec.ranks[4].role)
	}
}

func TestLostSpansGiveNobodyExcess(t *testing.T) {
	p := newPipeline(t, 4)
	p.lose = func(r, n int64, k int) bool { return n > 0 && (3*r+n+int64(k))%7 == 0 }
	for n := range int64(12) {
		p.step(n)
	}
	weighed := 0
	for _, rec := range p.window()[1:] {
		for _, mr := range rec.meets {
			for i, m := range mr.members {
				if m.weighed {
					weighed++
				}
				assert.Zero(t, m.excess.total(), "step %d %s rank %d", rec.step, mr.name, mr.ranks[i])
			}
		}
	}
	assert.Greater(t, weighed, 100, "most can be compared all the same")
}

func TestAMissingRankChangesNoRole(t *testing.T) {
	p := newPipeline(t, 4)
	p.step(0)
	// The next step comes without rank 1.
	kept := p.e.cfg.Deadline
	p.lose = func(r, _ int64, _ int) bool { return r == 1 }
	p.step(1)
	p.now = p.now.Add(2 * kept)
	p.e.Expire()
	require.Len(t, p.window(), 2)
	first, second := p.window()[0], p.window()[1]
	for i := range second.ranks {
		if i != 1 {
			assert.Equal(t, first.ranks[i].role, second.ranks[i].role, "rank %d", i)
		}
	}
}

func TestPlacesOfPipes(t *testing.T) {
	var p pipes
	p.join(4, 8)
	p.join(1, 5)
	p.join(0, 4)
	p.settle()
	for rank, want := range map[int64]int{0: 0, 4: 1, 8: 2, 1: 0, 5: 1} {
		assert.Equal(t, want, p.place[rank], "rank %d", rank)
	}
	p.join(5, 9)
	p.settle()
	assert.Equal(t, 2, p.place[9])
}

func TestARoleForgetsWhatWasDoneLongAgo(t *testing.T) {
	var m roleMemory
	m.saw(1, 0)
	m.saw(2, 0)
	both := m.sum(0)
	m.saw(1, 3)
	assert.Equal(t, both, m.sum(3), "one span lost")
	m.saw(1, 4)
	assert.NotEqual(t, both, m.sum(4), "it does so no more")
	for sort := range uint64(1000) {
		m.saw(sort, 5)
	}
	assert.LessOrEqual(t, m.n, maxSorts)
}

func TestTimeWithoutItsSpanIsNotIdleness(t *testing.T) {
	p := newPipeline(t, 4)
	p.lose = func(r, n int64, k int) bool { return r == 6 && n == 2 && k == 0 }
	sheets := sheetsOf(p.world)
	for n := range int64(3) {
		p.step(n)
	}
	// Rank 6 waited for its first microbatch, and nobody recorded that.
	rows := (*sheets)[2].Rows
	require.Len(t, rows, 8)
	for i, row := range rows {
		for _, c := range row.Cells {
			if (*sheets)[2].places(c.Place).Kind == judge.Host {
				assert.InDelta(t, 0, c.Own, 1e-9, "rank %d", i)
			}
		}
	}
}

func TestManyCommunicatorsOfARankAreBounded(t *testing.T) {
	w := newWorld(t, 2)
	for n := range int64(3) {
		for r := range int64(2) {
			var ops []model.Op
			for k := range int64(maxStreams + 200) {
				at := float64(n*10_000) + float64(k)
				op := collective(n, 0, 8, at+0.1*float64(r), at+0.5)
				op.Seq, op.Comm.ID = k, fmt.Sprint("comm", k)
				ops = append(ops, op)
			}
			w.e.Add(w.rank(r), append(ops, stepOp(n, float64(n*10_000), float64(n*10_000+5000))))
		}
	}
	rec := w.e.sorted()[0].window[2]
	assert.Len(t, rec.meets, maxStreams+200, "all are joined")
	assert.Empty(t, w.e.Verdicts())
}

func TestTimeBesideCommunication(t *testing.T) {
	v := &rankView{rankStep: &rankStep{comms: []commOp{{start: 10, end: 20}, {start: 15, end: 30}, {start: 50, end: 60}, {start: 70, end: 70}}}}
	var s spans
	v.besides(&s)
	for _, c := range []struct{ from, to, want int64 }{
		{0, 10, 0}, {0, 11, 1}, {0, 100, 30}, {12, 18, 6}, {25, 55, 10}, {30, 50, 0}, {60, 80, 0},
	} {
		assert.Equal(t, c.want, s.beside(c.from, c.to), "%d to %d", c.from, c.to)
	}
}
