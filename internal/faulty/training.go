// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

// ranks is how many a job has, one on each node.
const ranks = 8

// faultyRank has the fault.
const faultyRank = 5

func rankOf(job string, rank int64) model.Rank {
	node := fmt.Sprintf("%s-node%d", job, rank)
	return model.Rank{
		JobName: job, JobID: job, Incarnation: job, Rank: rank, WorldSize: model.Some(int64(ranks)), HostName: node,
		HostID: node, HWID: fmt.Sprintf("GPU-%s-%d", job, rank), PID: model.Some(rank + 100),
	}
}

const (
	// stepsOfMoment are the steps of a period; firstSteps are those before the first moment.
	stepsOfMoment, firstSteps = 4, 80
	stepTime                  = Period / stepsOfMoment
)

// straggling is a job whose rank 5 computes three times as long as the others.
func straggling(m *Moment) {
	first, count := firstSteps+(m.n-1)*stepsOfMoment, int64(stepsOfMoment)
	if m.n == 0 {
		first, count = 0, firstSteps
	}
	for i := range count {
		m.step(first+i, time.Duration(count-i)*stepTime)
	}
}

// step writes a step of all ranks, begun so long before the moment.
func (m *Moment) step(n int64, ago time.Duration) {
	begin := m.before(ago)
	const end = int64(31 * time.Millisecond)
	for rank := range int64(ranks) {
		compute := (10+rank%3)*int64(time.Millisecond) + jitter(rank, n)
		if rank == faultyRank && !m.right() {
			compute += int64(18 * time.Millisecond)
		}
		r := rankOf(m.job, rank)
		otelmap.AppendOps(m.Traces, &r, []model.Op{
			{Kind: model.KindCompute, Name: "gemm", Start: begin, End: begin + compute, Step: model.Some(n), Stream: model.Some(int64(7))},
			{
				Kind: model.KindCollective, Name: model.AllReduce, Start: begin + compute, End: begin + end, Step: model.Some(n), Stream: model.Some(int64(20)),
				Comm:       model.Comm{ID: m.job, Size: model.Some(int64(ranks))},
				Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(n), SeqScope: model.ScopeCommFunc},
			},
			{Kind: model.KindStep, Name: "step", Start: begin, End: begin + end, Step: model.Some(n)},
		})
	}
}

// jitter is by how much a rank computes longer in a step than at least, ns: without it, what aligns clocks would be all
// that varies from step to step, and that varies slowly.
func jitter(rank, step int64) int64 {
	return rand.New(rand.NewPCG(uint64(rank), uint64(step))).Int64N(int64(500 * time.Microsecond))
}

// beforeHang is how many collectives a job completes before it hangs.
const beforeHang = 60

// hanging is a job whose rank 5 never enters a collective that the others wait in.
func hanging(m *Moment) {
	if m.n == 0 {
		for i := range int64(beforeHang) {
			m.reduced(i, time.Duration(beforeHang-i)*10*time.Millisecond)
		}
	}
	next := int64(beforeHang)
	if m.right() {
		next += m.n - m.from + 1
		m.reduced(next-1, 10*time.Millisecond)
	}
	if m.each(4) {
		m.states(next)
	}
}

// reduced writes a collective that all ranks have completed, so long before the moment.
func (m *Moment) reduced(seq int64, ago time.Duration) {
	end := m.before(ago)
	for rank := range int64(ranks) {
		r := rankOf(m.job, rank)
		otelmap.AppendOps(m.Traces, &r, []model.Op{{
			Kind: model.KindCollective, Name: model.AllReduce, Start: end - int64(time.Millisecond), End: end, Comm: model.Comm{ID: "0xabc"},
			Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(seq), SeqScope: model.ScopeCommFunc},
		}})
	}
}

// states writes where all ranks are: seq is the first collective that is not complete.
func (m *Moment) states(seq int64) {
	for rank := range int64(ranks) {
		s := model.RankState{
			Rank: rankOf(m.job, rank), Time: m.at.UnixNano(), Source: model.StateRankEvents, Process: model.ProcessRunning,
			Comms: []model.CommState{{
				Comm: model.Comm{ID: "0xabc", Name: "world"}, Members: []int64{0, 1, 2, 3, 4, 5, 6, 7}, Scope: model.ScopeCommFunc,
				Frontiers: []model.Frontier{{Func: model.AllReduce, Enqueued: model.Some(seq - 1), Completed: model.Some(seq - 1)}},
			}},
		}
		if rank != faultyRank && !m.right() {
			s.Comms[0].Frontiers[0].Enqueued = model.Some(seq)
			s.Ops = []model.StateOp{{Kind: model.KindCollective, Name: model.AllReduce, Seq: seq, Created: m.before(time.Duration(m.n) * Period)}}
		}
		otelmap.AppendRankState(m.Logs, &s)
	}
}
