// SPDX-License-Identifier: Apache-2.0

package blame

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// pipe is a pipeline of stages by replicas that runs 1F1B, worked out by hand: each
// stage receives, computes and sends, messages of one direction on a stream of their
// own, receives posted as soon as the one before is over; gradients are reduced over
// the replicas of a stage at the end.
type pipe struct {
	stages, replicas, batches int
	forward, backward         float64                // ms of a microbatch
	compute                   func(r, b int) float64 // factor on rank r's microbatch b
	stall                     map[int]float64        // ms that the rank's host is late with its second microbatch
	transfer                  func(from int) float64
	known                     bool // the source tells microbatches
}

const (
	fwd Place = 20 + iota
	bwd
	actRecv
	actSend
	gradRecv
	gradSend
	sync
)

// task is one microbatch's forward or backward pass on a stage.
type task struct {
	back bool
	b    int
}

// order is 1F1B: as many forward passes as stages follow, then one of each.
func (p *pipe) order(stage int) []task {
	var out []task
	warm := min(p.stages-stage, p.batches)
	for b := range warm {
		out = append(out, task{b: b})
	}
	for b := range p.batches {
		out = append(out, task{back: true, b: b})
		if warm+b < p.batches {
			out = append(out, task{b: warm + b})
		}
	}
	return out
}

func (p *pipe) rank(replica, stage int) int { return replica*p.stages + stage }

// run returns the step and when it ended.
func (p *pipe) run() *hand {
	h := newHand(p.stages*p.replicas, 0)
	done := map[string]float64{} // when a pass of a stage was over
	key := func(rank int, t task) string { return fmt.Sprint(rank, t) }
	free, next := make([]float64, len(h.Ranks)), make([]int, len(h.Ranks))
	for moved := true; moved; {
		moved = false
		for r := range h.Ranks {
			stage := r % p.stages
			tasks := p.order(stage)
			for next[r] < len(tasks) {
				t := tasks[next[r]]
				from := r - 1
				if t.back {
					from = r + 1
				}
				came := 0.0
				if first := !t.back && stage == 0 || t.back && stage == p.stages-1; !first {
					sent, ok := done[key(from, t)]
					if !ok {
						break
					}
					came = sent + p.transfer(from)
				}
				begin := max(free[r], came)
				if next[r] == 1 {
					begin = max(begin, free[r]+p.stall[r])
				}
				length := p.forward
				if t.back {
					length = p.backward
				}
				free[r] = begin + length*p.compute(r, t.b)
				done[key(r, t)] = free[r]
				p.record(h, r, t, begin, free[r])
				next[r]++
				moved = true
			}
		}
	}
	p.messages(h)
	p.reduce(h, free)
	return h
}

func (p *pipe) record(h *hand, r int, t task, begin, end float64) {
	place := fwd
	if t.back {
		place = bwd
	}
	op := h.op(r, Compute, place, begin, end)
	if stall := p.stall[r]; stall > 0 && len(h.Ranks[r].Ops) == 2 {
		op.Launch = at(begin) - 10*us
	}
	if p.known {
		op.Micro = int32(t.b)
	}
	h.Ranks[r].Stage, h.Ranks[r].Role = int32(r%p.stages), uint64(r%p.stages)
}

// messages adds sends and receives to the passes.
func (p *pipe) messages(h *hand) {
	for r := range h.Ranks {
		stage := r % p.stages
		if stage+1 < p.stages {
			p.direction(h, r, r+1, fwd, actSend, actRecv)
		}
		if stage > 0 {
			p.direction(h, r, r-1, bwd, gradSend, gradRecv)
		}
	}
}

func (p *pipe) direction(h *hand, from, to int, pass, send, recv Place) {
	posted := 0.0
	b := 0
	for _, op := range h.Ranks[from].Ops {
		if op.Place != pass {
			continue
		}
		sent := float64(op.End-begin) / float64(ms)
		came := sent + p.transfer(from)
		s := h.op(from, Comm, send, sent, came)
		r := h.op(to, Comm, recv, posted, came)
		s.Lane, r.Lane = int64(send), int64(recv)
		if p.known {
			s.Micro, r.Micro = int32(b), int32(b)
		}
		h.meet(Message, from, to).Class = uint64(send)
		posted = came
		b++
	}
}

func (p *pipe) reduce(h *hand, free []float64) {
	for stage := range p.stages {
		last := 0.0
		var members []int
		for d := range p.replicas {
			last = max(last, free[p.rank(d, stage)])
			members = append(members, p.rank(d, stage))
		}
		for _, r := range members {
			h.op(r, Comm, sync, free[r], last+1)
			h.Ranks[r].End = at(last + 1)
		}
		if len(members) > 1 {
			h.meet(All, members...).Class = 1000
		}
	}
}

func (h *hand) length() (end float64) {
	for r := range h.Ranks {
		end = max(end, float64(h.Ranks[r].End-begin)/float64(ms))
	}
	return end
}

func even(int, int) float64 { return 1 }

func newPipe(stages, replicas, batches int) *pipe {
	return &pipe{
		stages: stages, replicas: replicas, batches: batches, forward: 5, backward: 10,
		compute: even, transfer: func(int) float64 { return 0.2 },
	}
}

func TestPipelineReplaysAsRecorded(t *testing.T) {
	for _, p := range []*pipe{newPipe(4, 2, 8), newPipe(8, 1, 16), newPipe(2, 4, 3)} {
		g := p.run().build()
		assert.Zero(t, g.Saved())
		assert.Zero(t, g.Forced())
		w := g.Walk()
		assert.False(t, w.Circular)
		for _, c := range w.Causes {
			assert.InDelta(t, 0, c.Excess, 1e-8, "%+v", c)
		}
		last := w.Path[len(w.Path)-1]
		assert.Equal(t, begin, last.From, "the path reaches the begin of the step")
	}
}

// A rank in the middle that computes 1.3 times as long: what is saved without it is
// what the pipeline takes longer with it.
func TestSlowRankOfAPipeline(t *testing.T) {
	for _, c := range []struct{ stages, replicas, batches, slow int }{{4, 2, 8, 5}, {4, 4, 8, 2}, {8, 2, 16, 12}, {4, 3, 8, 0}} {
		for _, known := range []bool{false, true} {
			p := newPipe(c.stages, c.replicas, c.batches)
			p.known = known
			healthy := p.run().length()
			p.compute = func(r, _ int) float64 {
				if r == c.slow {
					return 1.3
				}
				return 1
			}
			h := p.run()
			g := h.build()
			w := g.Walk()
			assert.Equal(t, int64(c.slow), w.Causes[0].Rank, "%+v", c)
			assert.Equal(t, Compute, w.Causes[0].Kind)
			truth := (h.length() - healthy) / 1e3
			got := g.Saved(Mend{Rank: int64(c.slow), Kind: Compute, Peer: -1})
			assert.InEpsilon(t, truth, got, 0.1, "%+v, microbatches known: %v", c, known)
		}
	}
}

// Nobody does what this rank does: it is compared with the other stages, by operation.
func TestSlowRankOfASinglePipeline(t *testing.T) {
	p := newPipe(8, 1, 16)
	healthy := p.run().length()
	p.compute = func(r, _ int) float64 {
		if r == 3 {
			return 1.5
		}
		return 1
	}
	h := p.run()
	g := h.build()
	w := g.Walk()
	assert.Equal(t, int64(3), w.Causes[0].Rank)
	truth := (h.length() - healthy) / 1e3
	assert.InEpsilon(t, truth, g.Saved(Mend{Rank: 3, Kind: Compute, Peer: -1}), 0.1)
}

func TestSlowHostOfAPipeline(t *testing.T) {
	p := newPipe(4, 2, 8)
	healthy := p.run().length()
	p.stall = map[int]float64{4: 40}
	h := p.run()
	g := h.build()
	w := g.Walk()
	assert.Equal(t, int64(4), w.Causes[0].Rank)
	assert.Equal(t, Host, w.Causes[0].Kind)
	truth := (h.length() - healthy) / 1e3
	assert.InEpsilon(t, truth, g.Saved(Mend{Rank: 4, Kind: Host, Peer: -1}), 0.1)
}

// A stage that has half as much again to do is nobody's fault.
func TestStageImbalance(t *testing.T) {
	p := newPipe(4, 4, 8)
	healthy := p.run().length()
	p.compute = func(r, _ int) float64 {
		if r%4 == 3 {
			return 1.5
		}
		return 1
	}
	h := p.run()
	g := h.build()
	w := g.Walk()
	c := w.Causes[0]
	assert.Equal(t, Stage, c.Kind)
	assert.Equal(t, int32(3), c.Stage)
	assert.Equal(t, int64(-1), c.Rank)
	for _, o := range w.Causes[1:] {
		assert.LessOrEqual(t, o.Excess, 1e-8, "%+v", o)
	}
	assert.InEpsilon(t, (h.length()-healthy)/1e3, g.Saved(c.Mend()), 0.1)
}

// Two replicas with a slow rank each, at other stages.
func TestTwoSlowRanksOfAPipeline(t *testing.T) {
	p := newPipe(4, 4, 8)
	healthy := p.run().length()
	p.compute = func(r, _ int) float64 {
		switch r {
		case 1:
			return 1.4
		case 14:
			return 1.2
		}
		return 1
	}
	h := p.run()
	g := h.build()
	both := g.Saved(Mend{Rank: 1, Kind: Compute, Peer: -1}, Mend{Rank: 14, Kind: Compute, Peer: -1})
	assert.InEpsilon(t, (h.length()-healthy)/1e3, both, 0.1)
	one := g.Saved(Mend{Rank: 1, Kind: Compute, Peer: -1})
	assert.Positive(t, one)
	assert.Less(t, one, both)
}
