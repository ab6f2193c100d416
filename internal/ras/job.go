// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Job is what one answer says, by global rank.
type Job struct {
	ID, Name, Incarnation string

	WorldSize int
	States    []model.RankState // of ranks that answered, ascending
	Absent    []Absent          // ascending
	Facts     []model.Fact
	// Apart is of how many communicators members were not all known.
	Apart int
}

// Absent is a rank that did not answer, and its process.
type Absent struct {
	model.Absence
	PID model.Optional[int64]
}

// partial says what a state from RAS lacks.
const partial = "NCCL's RAS counts what was launched; it tells nothing of what is open, of messages or of graphs"

// NewJob makes states of an answer. id and name are the job's; without an id, its incarnation
// stands for it, so that jobs that answer in turn stay apart. at is when it came, Unix ns;
// from says from where. The error says why ranks of the job cannot be told from those of a
// communicator.
func NewJob(s *Status, id, name, from string, at int64) (*Job, error) {
	w, err := findWorld(s)
	if err != nil {
		return nil, err
	}
	if id == "" {
		id = w.incarnation()
	}
	b := jobBuilder{
		world: w, at: at, from: from, states: map[int64]*model.RankState{}, absent: map[int64]*Absent{},
		job: &Job{ID: id, Name: name, Incarnation: w.incarnation(), WorldSize: w.comm.Size},
		of: model.Rank{
			JobID: id, JobName: name, Incarnation: w.incarnation(), WorldSize: model.Some(int64(w.comm.Size)),
		},
	}
	b.version = s.NCCLVersion
	for i := range s.Comms {
		b.comm(&s.Comms[i])
	}
	return b.done(), nil
}

type jobBuilder struct {
	world   *world
	of      model.Rank
	at      int64
	from    string
	version string
	states  map[int64]*model.RankState
	absent  map[int64]*Absent
	job     *Job
}

func (b *jobBuilder) comm(c *Comm) {
	members := b.world.members(c)
	if members == nil {
		b.job.Apart++
	}
	for i := range c.Ranks {
		r := &c.Ranks[i]
		global, ok := b.world.global(c, &r.Process)
		if !ok {
			continue
		}
		s := b.state(global, &r.Process)
		s.Comms = append(s.Comms, commState(c, r, members))
		b.errors(s, c, r)
	}
	for i := range c.Missing {
		b.missing(c, &c.Missing[i])
	}
}

func (b *jobBuilder) state(rank int64, p *Process) *model.RankState {
	s := b.states[rank]
	if s == nil {
		s = &model.RankState{
			Rank: b.rank(rank, p), Time: b.at, Source: model.StateRAS, Process: model.ProcessRunning, LibVersion: b.version, Partial: partial,
			Name: fmt.Sprintf("RAS at %s: process %d on %s", b.from, p.PID, p.Host),
		}
		b.states[rank] = s
	}
	return s
}

func (b *jobBuilder) rank(rank int64, p *Process) model.Rank {
	of := b.of
	of.Rank = rank
	if p.PID >= 0 {
		of.PID = model.Some(int64(p.PID))
	}
	return of
}

func commState(c *Comm, r *Rank, members []int64) model.CommState {
	s := model.CommState{
		Comm:    model.Comm{ID: hashText(c.Hash), Size: model.Some(int64(c.Size)), Rank: model.Some(int64(r.Rank))},
		Backend: "nccl", Members: members, Scope: model.ScopeCommFunc,
	}
	for _, n := range r.Counts {
		if n.N > 0 { // the first is number 0
			s.Frontiers = append(s.Frontiers, model.Frontier{Func: model.NCCLFunction(n.Func), Enqueued: model.Some(n.N - 1)})
		}
	}
	return s
}

// maxFacts bounds the facts of one answer: when a job breaks, all ranks say so.
const maxFacts = 1024

func (b *jobBuilder) errors(s *model.RankState, c *Comm, r *Rank) {
	add := func(kind, what string) {
		if len(b.job.Facts) < maxFacts {
			b.job.Facts = append(b.job.Facts, model.Fact{Rank: s.Rank, Source: string(model.StateRAS), Kind: kind, What: what, Time: b.at})
		}
	}
	where := fmt.Sprintf("communicator %s of %d ranks", hashText(c.Hash), c.Size)
	if failed(r.AsyncError) {
		add(model.FactNCCLAsyncError, resultText(r.AsyncError)+" on "+where)
	}
	if failed(r.InitState) {
		add(model.FactNCCLInitError, resultText(r.InitState)+" in the making of "+where)
	}
	if r.AbortFlag {
		add(model.FactNCCLAborted, where+" was aborted")
	}
}

// missing notes who did not answer. Who answered that it is no member any more is not absent.
func (b *jobBuilder) missing(c *Comm, m *MissingRank) {
	rank, ok := b.world.global(c, &m.Process)
	if !ok || (!m.ConsideredDead && !m.Unresponsive) {
		return
	}
	a := b.absent[rank]
	if a == nil {
		a = &Absent{Absence: model.Absence{Rank: rank, Time: b.at}}
		b.absent[rank] = a
	}
	if m.PID >= 0 {
		a.PID = model.Some(int64(m.PID))
	}
	if a.Reason == model.AbsentDead {
		return
	}
	who := fmt.Sprintf("process %d on %s", m.PID, m.Host)
	if m.PID < 0 {
		who = "its process"
	}
	a.Reason, a.Detail = model.AbsentMissing, fmt.Sprintf("%s does not answer NCCL's RAS (asked at %s)", who, b.from)
	if m.ConsideredDead {
		a.Reason, a.Detail = model.AbsentDead, fmt.Sprintf("NCCL's RAS considers %s dead (asked at %s)", who, b.from)
	}
}

func (b *jobBuilder) done() *Job {
	j := b.job
	for _, s := range b.states {
		j.States = append(j.States, *s)
	}
	slices.SortFunc(j.States, func(a, b model.RankState) int { return int(a.Rank.Rank - b.Rank.Rank) })
	for rank, a := range b.absent {
		if b.states[rank] == nil { // who answers on one communicator lives
			j.Absent = append(j.Absent, *a)
		}
	}
	slices.SortFunc(j.Absent, func(a, b Absent) int { return int(a.Rank - b.Rank) })
	return j
}

// Identity is the resource of a rank that is absent.
func (j *Job) Identity(a *Absent) model.Rank {
	return model.Rank{
		JobID: j.ID, JobName: j.Name, Incarnation: j.Incarnation, Rank: a.Rank, WorldSize: model.Some(int64(j.WorldSize)), PID: a.PID,
	}
}

// Results of NCCL.
const (
	resultSuccess    = 0
	resultInProgress = 7
)

func failed(result int) bool { return result != resultSuccess && result != resultInProgress }

// results are NCCL's words for its results.
var results = map[int]string{
	1: "unhandled CUDA error", 2: "system error", 3: "internal error", 4: "invalid argument", 5: "invalid usage", 6: "remote process error",
}

func resultText(result int) string {
	if text, ok := results[result]; ok {
		return text
	}
	return fmt.Sprintf("NCCL result %d", result)
}
