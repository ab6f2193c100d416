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
	// Beside are ranks that have launched more or less than members of which text does not say which
	// processes they are.
	Beside []Beside
	// Unnumbered: there is no world communicator. Ranks are numbers of processes in an order of
	// this package, and WorldSize is 0.
	Unnumbered bool
}

// Beside is how a rank compares with the members of one communicator that are not known.
type Beside struct {
	Rank  int64
	Ahead bool // it has launched more; else less
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
	return w.job(s, Origin{ID: id, Name: name, From: from, At: at}), nil
}

// Origin says of which job an answer is, and where and when it was given.
type Origin struct {
	// ID and Name are the job's. Without an id its incarnation stands for it.
	ID, Name string
	// From is an address or a file.
	From string
	// Saved: From is a file.
	Saved bool
	At    int64 // Unix ns
}

func (w *world) job(s *Status, o Origin) *Job {
	if o.ID == "" {
		o.ID = w.incarnation()
	}
	j := &Job{ID: o.ID, Name: o.Name, Incarnation: w.incarnation(), WorldSize: w.size(), Unnumbered: w.comm == nil}
	b := jobBuilder{
		world: w, at: o.At, from: o.From, prefix: "RAS at " + o.From + ": ", states: map[int64]*model.RankState{}, absent: map[int64]*Absent{}, job: j,
		of: model.Rank{JobID: j.ID, JobName: j.Name, Incarnation: j.Incarnation},
	}
	if o.Saved {
		b.prefix = o.From + ": "
	}
	if j.WorldSize > 0 {
		b.of.WorldSize = model.Some(int64(j.WorldSize))
	}
	b.version, b.prose, b.saved = s.NCCLVersion, s.Prose, o.Saved
	for i := range s.Comms {
		b.comm(&s.Comms[i])
	}
	return b.done()
}

type jobBuilder struct {
	world   *world
	of      model.Rank
	at      int64
	from    string
	prefix  string // of the names of states
	version string
	prose   bool
	saved   bool
	states  map[int64]*model.RankState
	absent  map[int64]*Absent
	job     *Job
}

func (b *jobBuilder) comm(c *Comm) {
	members := b.world.members(c)
	if members == nil {
		b.job.Apart++
	}
	unlisted := b.unlisted(c)
	for i := range c.Ranks {
		r := &c.Ranks[i]
		global, ok := b.world.global(c, &r.Process)
		if !ok {
			continue
		}
		s := b.state(global, &r.Process)
		s.Comms = append(s.Comms, commState(c, r, members, b.prose))
		if unlisted != nil {
			b.beside(global, r, unlisted)
		}
		b.errors(s, c, r)
	}
	for i := range c.Missing {
		b.missing(c, &c.Missing[i])
	}
}

// unlisted is one of the members of which text does not say which processes they are: where it tells
// their counts, they have one. nil: there is none.
func (b *jobBuilder) unlisted(c *Comm) *Rank {
	for i := range c.Ranks {
		if r := &c.Ranks[i]; b.prose && r.PID < 0 {
			if _, known := b.world.global(c, &r.Process); !known {
				return r
			}
		}
	}
	return nil
}

// beside notes whether a rank has launched more or less than o: neither where it is more of one function
// and less of another.
func (b *jobBuilder) beside(rank int64, r, o *Rank) {
	more, less := false, false
	for _, n := range r.Counts {
		for _, m := range o.Counts {
			if n.Func == m.Func {
				more, less = more || n.N > m.N, less || n.N < m.N
			}
		}
	}
	if more != less {
		b.job.Beside = append(b.job.Beside, Beside{rank, more})
	}
}

func (b *jobBuilder) state(rank int64, p *Process) *model.RankState {
	s := b.states[rank]
	if s == nil {
		s = &model.RankState{
			Rank: b.rank(rank, p), Time: b.at, Source: model.StateRAS, Process: model.ProcessRunning, LibVersion: b.version, Partial: partial,
			Name: b.prefix + p.Text(), OnlyActive: b.prose,
		}
		if b.job.Unnumbered && p.PID >= 0 {
			s.Rank.HostName = p.Host
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

func commState(c *Comm, r *Rank, members []int64, prose bool) model.CommState {
	s := model.CommState{
		Comm:    model.Comm{ID: hashText(c.Hash), Size: model.Some(int64(c.Size)), Rank: model.Some(int64(r.Rank))},
		Backend: "nccl", Members: members, Scope: model.ScopeCommFunc,
	}
	for _, n := range r.Counts {
		f := model.Frontier{Func: model.NCCLFunction(n.Func)}
		if n.N > 0 { // the first is number 0
			f.Enqueued = model.Some(n.N - 1)
		}
		if n.N > 0 || prose { // what prose does not mention is not known
			s.Frontiers = append(s.Frontiers, f)
		}
	}
	return s
}

// maxFacts bounds the facts of one answer: when a job breaks, all ranks say so.
const maxFacts = 1024

func (b *jobBuilder) errors(s *model.RankState, c *Comm, r *Rank) {
	add := func(kind, what string) { b.fact(s, kind, what) }
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

func (b *jobBuilder) fact(s *model.RankState, kind, what string) {
	if len(b.job.Facts) < maxFacts {
		b.job.Facts = append(b.job.Facts, model.Fact{Rank: s.Rank, Source: string(model.StateRAS), Kind: kind, What: what, Time: b.at})
	}
}

// missing notes who did not answer. Who answered that it is no member any more is not absent.
func (b *jobBuilder) missing(c *Comm, m *MissingRank) {
	rank, ok := b.world.global(c, &m.Process)
	if !ok {
		return
	}
	if !m.ConsideredDead && !m.Unresponsive {
		if b.saved { // how much it had launched is not known
			s := b.state(rank, &m.Process)
			b.fact(s, model.FactNCCLAborted, fmt.Sprintf("it is no member any more of communicator %s of %d ranks", hashText(c.Hash), c.Size))
		}
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
	if b.job.Unnumbered {
		who = m.Text()
	}
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
	of := model.Rank{JobID: j.ID, JobName: j.Name, Incarnation: j.Incarnation, Rank: a.Rank, PID: a.PID}
	if j.WorldSize > 0 {
		of.WorldSize = model.Some(int64(j.WorldSize))
	}
	return of
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
