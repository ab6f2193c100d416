// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// plant is a job of some ranks that reduce over all of them in each step, seen as the
// receiver rank_events sees it: spans of what is over at once, states of ranks that have stood
// or had no traffic for 2 s, again each 2 s, and once more when they go on.
type plant struct {
	t        *testing.T
	w        *Watch
	now      time.Time
	step     time.Duration
	ranks    []*worker
	findings []model.Finding
	at       []time.Time // of the findings
	cut      bool        // the network: nothing ends
	phase    time.Duration
	opens    bool // no states are sent, only operations that do not end
}

type worker struct {
	rank           model.Rank
	seq            int64
	inOp           bool
	enqueued       time.Time
	moved          time.Time // last traffic
	busy           time.Time // until then its host computes
	stuck          bool
	phase, scope   string
	process        model.ProcessState
	diedAt         time.Time
	bytes          int64
	told, reported bool
	toldAt         time.Time
	mute           bool // its node is lost
	// clock is how far its host is ahead; what was enqueued before it was set has its former time.
	clock, enqueuedBy time.Duration
}

const tickEvery = 10 * time.Millisecond

func newPlant(t *testing.T, ranks int, step time.Duration) *plant {
	t.Helper()
	p := &plant{t: t, w: New(NewDefaultConfig()), now: time.Unix(1_760_000_000, 0), step: step}
	for i := range int64(ranks) {
		p.ranks = append(p.ranks, &worker{bytes: 1 << 20, process: model.ProcessRunning, rank: model.Rank{
			JobName: "training", JobID: "job", Incarnation: "life", Rank: i, WorldSize: model.Some(int64(ranks)),
			HostName: "node" + string(rune('a'+i/4)), PID: model.Some(1000 + i),
		}})
	}
	return p
}

// run lets time pass.
func (p *plant) run(d time.Duration) {
	for end := p.now.Add(d); p.now.Before(end); {
		p.now = p.now.Add(tickEvery)
		for _, r := range p.ranks {
			if !r.inOp && !r.stuck && r.process == model.ProcessRunning && !p.now.Before(r.busy) {
				r.inOp, r.enqueued, r.moved, r.enqueuedBy = true, p.now, p.now, r.clock
			}
		}
		p.meet()
		for _, r := range p.ranks {
			p.report(r)
		}
		if p.now.Add(-p.phase).UnixNano()%int64(500*time.Millisecond) == 0 {
			for _, f := range p.w.Tick(p.now) {
				p.findings, p.at = append(p.findings, f), append(p.at, p.now)
			}
		}
	}
}

// meet ends the operation in which all ranks are and agree.
func (p *plant) meet() {
	for _, r := range p.ranks {
		if p.cut || !r.inOp || r.process == model.ProcessDead || r.bytes != p.ranks[0].bytes || r.seq != p.ranks[0].seq {
			return
		}
	}
	for i, r := range p.ranks {
		r.inOp, r.moved = false, p.now
		r.busy = p.now.Add(p.step + time.Duration(i)*tickEvery)
		if !r.mute {
			p.w.AddOps(&model.RankOps{Rank: r.rank, Ops: []model.Op{{
				Kind: model.KindCollective, Name: model.AllReduce, Start: r.enqueuedAt(), End: p.now.Add(r.clock).UnixNano(),
				Comm:       model.Comm{ID: "0xabc", Name: "world"},
				Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(r.seq), SeqScope: model.ScopeCommFunc},
			}}}, p.now)
		}
		r.seq++
	}
}

func (p *plant) report(r *worker) {
	if r.mute || r.reported {
		return
	}
	if r.process == model.ProcessDead {
		if p.now.Sub(r.diedAt) >= 3*time.Second {
			r.reported = true
			p.state(r)
		}
		return
	}
	if p.opens {
		p.open(r)
		return
	}
	stands := !r.moved.IsZero() && p.now.Sub(r.moved) >= 2*time.Second
	if stands && r.told && p.now.Sub(r.toldAt) < 2*time.Second || !stands && !r.told {
		return
	}
	r.told, r.toldAt = stands, p.now
	p.state(r)
}

// open tells of an operation that has not ended for 2 s, again each 30 s, and of its end.
func (p *plant) open(r *worker) {
	o := model.OpenOp{
		Op: model.Op{
			Kind: model.KindCollective, Name: model.AllReduce, Comm: model.Comm{ID: "0xabc", Name: "world"},
			Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(r.seq), SeqScope: model.ScopeCommFunc},
		},
		Time: p.now.Add(r.clock).UnixNano(), Status: model.StatusUpdated, Age: p.now.Sub(r.enqueued).Seconds(),
		Enqueued: model.Some(r.seq), Completed: model.Some(r.seq - 1),
	}
	switch {
	case r.told && !r.inOp:
		r.told, o.Status, o.Op.Collective.Seq = false, model.StatusClosed, model.Some(r.seq-1)
	case r.inOp && p.now.Sub(r.enqueued) >= 2*time.Second && (!r.told || p.now.Sub(r.toldAt) >= 30*time.Second):
		r.told, r.toldAt = true, p.now
	default:
		return
	}
	p.w.AddOpen(&r.rank, &o, p.now)
}

func (p *plant) state(r *worker) {
	s := model.RankState{
		Rank: r.rank, Time: p.now.Add(r.clock).UnixNano(), Source: model.StateRankEvents, Name: "ring", Process: r.process,
		Phase: r.phase, Scope: r.scope, LastEnqueue: r.enqueuedAt(),
	}
	c := model.CommState{
		Comm: model.Comm{ID: "0xabc", Name: "world"}, Backend: "nccl", Scope: model.ScopeCommFunc,
		Frontiers: []model.Frontier{{Func: model.AllReduce, Completed: model.Some(r.seq - 1), Enqueued: model.Some(r.seq - 1)}},
	}
	for i := range p.ranks {
		c.Members = append(c.Members, int64(i))
	}
	if r.inOp {
		c.Frontiers[0].Enqueued = model.Some(r.seq)
		s.Ops = []model.StateOp{{
			Kind: model.KindCollective, Name: model.AllReduce, Seq: r.seq, Created: r.enqueuedAt(), Bytes: model.Some(r.bytes),
		}}
	}
	s.Comms = []model.CommState{c}
	if r.process == model.ProcessDead {
		s.Time = r.diedAt.UnixNano()
	}
	p.w.AddState(&s, p.now)
}

func (r *worker) enqueuedAt() int64 { return r.enqueued.Add(r.enqueuedBy).UnixNano() }

// die ends the process of a rank without a word.
func (p *plant) die(rank int) {
	r := p.ranks[rank]
	r.process, r.diedAt = model.ProcessDead, p.now
}

// only returns the finding that is told alone, in all of its revisions.
func (p *plant) only() model.Finding {
	p.t.Helper()
	require.NotEmpty(p.t, p.findings)
	for _, f := range p.findings {
		require.Equal(p.t, p.findings[0].ID, f.ID, "%+v", p.findings)
	}
	return p.findings[len(p.findings)-1]
}

// told is how long after since the first finding came.
func (p *plant) told(since time.Time) time.Duration {
	p.t.Helper()
	require.NotEmpty(p.t, p.at)
	return p.at[0].Sub(since)
}
