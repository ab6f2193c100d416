// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Life is what is kept of one rank.
type Life struct {
	Rank int64 `json:"rank"`
	// Keys are the operations outside of steps, by key.
	Keys    map[string]int64 `json:"keys,omitempty"`
	Marks   []Mark           `json:"marks,omitempty"`
	Pending []Record         `json:"pending,omitempty"`
	// Closed: something before the first mark was handed on.
	Closed bool `json:"closed,omitempty"`
}

// Mark is the beginning of a step.
type Mark struct {
	Step   int64 `json:"step"`
	Launch int64 `json:"launch"` // Unix ns, of the host
	Seen   int64 `json:"seen"`   // Unix ns, of the dump that told of it
}

// maxKeys bounds the keys of one rank; further ones share otherKey, as
// docs/format/summary.md says.
const (
	maxKeys  = 256
	otherKey = "(other)"
)

func (l *Life) keys() map[string]int64 {
	if l.Keys == nil {
		l.Keys = map[string]int64{}
	}
	return l.Keys
}

// hold keeps a timed operation until its step is over.
func (p *Process) hold(l *Life, r *Record) {
	l.Pending = append(l.Pending, *r)
	p.mark(l, r)
	if len(l.Pending) >= p.cfg.MaxHeld {
		p.sink.Odd(OddHeld, 1)
		p.relieve(l)
	}
}

func (p *Process) mark(l *Life, r *Record) {
	a := p.cfg.Anchor
	if r.Kind != Collective || r.Comm.ID != p.World || r.Name != a.Function || r.Seq%a.Every != 0 {
		return
	}
	m := Mark{Step: r.Seq / a.Every, Launch: r.Launch, Seen: r.Source.Dumped}
	if n := len(l.Marks); n > 0 && (m.Step <= l.Marks[n-1].Step || m.Launch <= l.Marks[n-1].Launch) {
		p.sink.Odd(OddAnchor, 1)
		return
	}
	l.Marks = append(l.Marks, m)
}

// relieve makes room: by closing all steps that are over, else by giving up steps.
func (p *Process) relieve(l *Life) {
	if n := len(l.Marks); n > 0 {
		p.closeBefore(l, n-1)
	}
	if len(l.Pending) < p.cfg.MaxHeld {
		return
	}
	rank := p.rank(l)
	for i := range l.Pending {
		p.withoutStep(l, &rank, &l.Pending[i], OddWithoutStep)
	}
	// What comes of the step that was begun is no whole step any more.
	l.Pending, l.Marks, l.Closed = nil, nil, true
}

func (p *Process) settle(l *Life, end bool) {
	over := -1
	for i := range l.Marks {
		if p.Newest-l.Marks[i].Seen >= int64(p.cfg.StepWait) {
			over = i
		}
	}
	if end {
		over = len(l.Marks) - 1
	}
	if over >= 0 {
		p.closeBefore(l, over)
	}
	if !end {
		return
	}
	rank := p.rank(l)
	if len(l.Marks) == 0 {
		for i := range l.Pending {
			p.withoutStep(l, &rank, &l.Pending[i], OddWithoutStep)
		}
		return
	}
	p.closeStep(l, &rank, l.Marks[0], l.Pending, 0)
}

// closeBefore hands on what was enqueued before mark i.
func (p *Process) closeBefore(l *Life, i int) {
	slices.SortStableFunc(l.Pending, func(a, b Record) int { return cmp.Compare(a.Launch, b.Launch) })
	rank, from := p.rank(l), 0
	until := func(launch int64) []Record {
		to := from
		for to < len(l.Pending) && l.Pending[to].Launch < launch {
			to++
		}
		part := l.Pending[from:to]
		from = to
		return part
	}
	reason := OddWithoutStep
	if l.Closed {
		reason = OddLate
	}
	before := until(l.Marks[0].Launch)
	for k := range before {
		p.withoutStep(l, &rank, &before[k], reason)
	}
	for k := range i {
		m, next := l.Marks[k], l.Marks[k+1]
		part := until(next.Launch)
		if next.Step == m.Step+1 {
			p.closeStep(l, &rank, m, part, next.Launch)
			continue
		}
		// Where the step ended was dropped.
		for n := range part {
			p.withoutStep(l, &rank, &part[n], OddWithoutStep)
		}
	}
	l.Pending = append(l.Pending[:0], l.Pending[from:]...)
	l.Marks = append(l.Marks[:0], l.Marks[i:]...)
	l.Closed = true
}

// closeStep hands on a step: its operations in the order in which they were enqueued,
// then the step, which ends with the last of them where end is 0.
func (p *Process) closeStep(l *Life, rank *model.Rank, m Mark, ops []Record, end int64) {
	slices.SortStableFunc(ops, func(a, b Record) int { return cmp.Compare(a.Launch, b.Launch) })
	keys := map[string]int64{}
	sent := int64(0)
	last := m.Launch
	for i := range ops {
		if ops[i].Launch < m.Launch {
			p.withoutStep(l, rank, &ops[i], OddLate)
			continue
		}
		p.emit(rank, &ops[i], model.Some(m.Step), keys)
		last = max(last, ops[i].End)
		sent++
	}
	if end == 0 {
		end = last
	}
	p.sink.Operation(rank, &model.Op{
		Kind: model.KindStep, Name: "step", Step: model.Some(m.Step), StepOps: model.Some(sent), Start: m.Launch, End: end,
	})
}

func (p *Process) withoutStep(l *Life, rank *model.Rank, r *Record, reason string) {
	p.sink.Odd(reason, 1)
	p.emit(rank, r, model.Optional[int64]{}, l.keys())
}

func (p *Process) emit(rank *model.Rank, r *Record, step model.Optional[int64], keys map[string]int64) {
	op := p.operation(r)
	op.Step = step
	key := op.ComparisonKey()
	if _, known := keys[key]; !known && len(keys) >= maxKeys {
		p.sink.Odd(OddKeys, 1)
		key, op.Key = otherKey, otherKey
	}
	op.Seq = keys[key]
	keys[key]++
	p.sink.Operation(rank, &op)
}

// operation maps a timed record.
func (p *Process) operation(r *Record) model.Op {
	op := model.Op{
		Kind: model.KindCollective, Name: r.Name, Start: r.Start, End: r.End, Launch: model.Some(r.Launch),
		Comm: model.Comm{ID: r.Comm.ID, Name: r.Comm.Name, Size: model.Some(r.Comm.Ranks), Rank: model.Some(r.Comm.Rank)},
		Collective: model.Collective{
			Name: r.Name, Seq: model.Some(r.Seq), SeqScope: model.ScopeCommFunc, Bytes: model.Some(r.Bytes),
			Algo: r.Algo, Proto: r.Proto, State: "completed",
		},
	}
	if r.Comm.Name != "" {
		op.Key = r.Name + " " + r.Comm.Name
	}
	if r.Channels > 0 {
		op.Collective.Channels = model.Some(r.Channels)
	}
	if r.Kind != Message {
		return op
	}
	op.Kind = model.KindSend
	if r.Name == model.OpRecv {
		op.Kind = model.KindRecv
	}
	// Inspector counts the messages of a communicator that it tracks, both ways and
	// to all peers: a number that no other rank shares.
	op.Collective.SeqScope = model.ScopeProcess
	if r.Comm.ID == p.World {
		op.Peer = r.Peer
	} else {
		op.PeerLocal = r.Peer
	}
	return op
}

// DefaultConfig returns the defaults: the first seconds of a job create its
// communicators, and a process writes what it dumps at once.
func DefaultConfig() Config {
	return Config{WorldWait: 10 * time.Second, StepWait: 5 * time.Second, MaxHeld: 16384}
}
