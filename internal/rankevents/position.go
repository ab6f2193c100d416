// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

const (
	// maxKeptSteps bounds the open steps of a position. With more, the one before stays: from
	// there more is read again.
	maxKeptSteps = 512
	// keptBegins is how many steps before the first open one a position knows the beginning of,
	// for kernels that come late.
	keptBegins = 8
	// maxKeptRecords bounds the counts of a position, so that their sums do not overflow.
	maxKeptRecords = 1 << 60
)

// Position is how far a reader read and emitted the ring of a rank, and what another reader must
// know to continue from there. That reader reads the records of unfinished steps again, emits only
// what was not emitted, and counts each record once.
type Position struct {
	Process
	Ended bool     `json:"ended,omitempty"` // all of it was read and handed on
	Lanes []Stop   `json:"lanes,omitempty"` // those with records
	Count Counted  `json:"count"`
	Rank  *Settled `json:"rank,omitempty"` // nil if the rank is not known yet
}

// Process names the process that writes the ring.
type Process struct {
	Boot    string `json:"boot"`
	PID     uint64 `json:"pid"`
	Start   uint64 `json:"start"`
	Created uint64 `json:"created"`
}

// ProcessOf names the process of a ring.
func ProcessOf(h *ring.Header) Process {
	return Process{h.BootID, h.PID, h.StartTime, h.Created}
}

// Stop is how far a lane was read: its number, from where unfinished steps are to be read again,
// and up to where it was read.
type Stop [3]uint64

// Counted are records by what became of them, since the ring was made.
type Counted struct {
	Read    int64 `json:"read"`
	Lost    int64 `json:"lost"`
	Before  int64 `json:"before"`
	Skipped int64 `json:"skipped"`
}

// Add adds what became of other records.
func (c *Counted) Add(o Counted) {
	c.Read, c.Lost, c.Before, c.Skipped = c.Read+o.Read, c.Lost+o.Lost, c.Before+o.Before, c.Skipped+o.Skipped
}

// Settled is what was found out of a rank, and where its steps are.
type Settled struct {
	Global int64  `json:"rank"`
	World  int32  `json:"world"`
	Epoch  int64  `json:"epoch"`
	Life   uint64 `json:"life,omitempty"`

	WorldHash  uint64 `json:"world_hash,omitempty"`
	WorldIndex uint16 `json:"world_index,omitempty"`
	WorldSize  int32  `json:"world_size,omitempty"`
	WorldEnded bool   `json:"world_ended,omitempty"`

	Marked    bool        `json:"marked,omitempty"`
	Closed    int64       `json:"closed"`
	PrevEnd   uint64      `json:"prev_end,omitempty"`
	LastBegin uint64      `json:"last_begin,omitempty"`
	Open      []OpenStep  `json:"open,omitempty"`
	Begins    []StepBegin `json:"begins,omitempty"`
	Gap       int64       `json:"gap,omitempty"`
	Anchor    KeptAnchor  `json:"anchor"`
	Groups    []OpenGroup `json:"groups,omitempty"`
	Kernels   KeptKernels `json:"kernels"`
	Loaded    *KeptResume `json:"loaded,omitempty"`
	Stands    bool        `json:"stands,omitempty"` // its state was handed on, and has to be once more
}

// OpenStep is a step that was not handed on.
type OpenStep struct {
	N     int64  `json:"n"`
	Begin uint64 `json:"begin,omitempty"`
	Lost  int64  `json:"lost,omitempty"`
}

// StepBegin is when a step began, MONOTONIC_RAW ns.
type StepBegin struct {
	N  int64  `json:"n"`
	At uint64 `json:"at"`
}

// OpenGroup is a group launch that may still get messages: its communicator and its number.
type OpenGroup [2]uint32

// KeptAnchor is how the steps of a program that marks none are numbered.
type KeptAnchor struct {
	Func   uint8  `json:"func,omitempty"`
	Every  int64  `json:"every,omitempty"`
	Step   int64  `json:"step"`
	Placed uint64 `json:"placed,omitempty"` // enqueueing of the latest operation that was given its step
}

// KeptKernels is the state of the kernels of a rank.
type KeptKernels struct {
	Folded   int64         `json:"folded,omitempty"`
	Newest   int64         `json:"newest"`
	Seen     uint64        `json:"seen,omitempty"`
	Launched bool          `json:"launched,omitempty"`
	Until    uint64        `json:"until,omitempty"` // launch up to which they were folded
	Clock    gpuclock.Pair `json:"clock"`           // the latest reading before the records to read again
}

// KeptResume is what the rank said that it loaded.
type KeptResume struct {
	Resume      model.Resume `json:"resume"`
	Incarnation string       `json:"incarnation"`
	Raw         uint32       `json:"raw"`
	Base        uint32       `json:"base,omitempty"`
}

// Position returns how far the ring was read, as of the last pass; false where nothing was, or too
// much is open to be kept. It needs Config.KeepPosition.
func (r *Rank) Position() (Position, bool) {
	p := Position{Process: ProcessOf(&r.header), Count: r.Counted()}
	now := r.src.Cursors(nil)
	from, clock := now, r.kernels.clock.Last()
	if pass := r.unfinished(); pass <= r.pass && len(r.trail.starts) > 0 {
		s := r.trail.of(pass)
		from, clock = s.cursors, s.clock
		r.trail.forget(s)
	}
	for i := range now {
		if now[i] > 0 {
			p.Lanes = append(p.Lanes, Stop{uint64(i), min(from[i], now[i]), now[i]})
		}
	}
	if len(r.steps.open) > maxKeptSteps || !r.ready && len(p.Lanes) == 0 {
		return p, false
	}
	if r.ready {
		p.Rank = r.settled(clock)
	}
	return p, true
}

// Counted returns what became of the ring's records, with what readers before had counted.
func (r *Rank) Counted() Counted {
	c, s := r.trail.counted, &r.stats
	return Counted{c.Read + s.Records, c.Lost + s.Lost, c.Before + s.BeforeAttach, c.Skipped + s.Skipped}
}

func (r *Rank) settled(clock gpuclock.Pair) *Settled {
	w, t, a, k := &r.worldComm, &r.steps, &r.anchor, &r.kernels
	s := &Settled{
		Global: r.global, World: r.world, Epoch: r.epoch, Life: r.life,
		WorldHash: w.hash, WorldIndex: w.index, WorldSize: w.size, WorldEnded: w.ended,
		Marked: r.marked, Closed: t.closed, PrevEnd: t.prevEnd, LastBegin: t.lastBegin, Gap: r.gap.records,
		Anchor:  KeptAnchor{a.fn, a.every, a.step, max(r.trail.placed, r.trail.newest)},
		Kernels: KeptKernels{r.trail.kernels + r.stats.Kernels, k.newest, k.seenAt, k.launched, r.trail.until, clock},
		Stands:  r.standing.told,
	}
	oldest := uint64(0)
	for _, o := range t.open {
		s.Open = append(s.Open, OpenStep{o.n, o.begin, o.lost})
		if o.begin != 0 && (oldest == 0 || o.begin < oldest) {
			oldest = o.begin
		}
	}
	s.Begins = k.begins.since(oldest)
	for _, g := range r.groups.open {
		s.Groups = append(s.Groups, OpenGroup{uint32(g.key.comm), g.key.group})
	}
	if l := &r.loaded; l.last.Number > 0 {
		s.Loaded = &KeptResume{l.last, l.last.Rank.Incarnation, l.raw, l.base}
		s.Loaded.Resume.Rank = model.Rank{}
	}
	return s
}

// since returns the beginnings from a time on, and those shortly before.
func (t *beginTable) since(at uint64) (out []StepBegin) {
	i, _ := slices.BinarySearchFunc(t.list, at, beganBefore)
	if at == 0 {
		i = len(t.list)
	}
	list := t.list[max(0, i-keptBegins, len(t.list)-maxKeptSteps-keptBegins):]
	for _, b := range list {
		out = append(out, StepBegin{b.n, b.at})
	}
	return out
}

// Resume takes up the reading of another reader. It is called before the first pass; a position
// that is not of this ring is refused, and changes nothing.
func (r *Rank) Resume(p *Position) error {
	if err := p.check(&r.header); err != nil {
		return err
	}
	places := make([]ring.Place, r.header.Lanes)
	for _, s := range p.Lanes {
		places[s[0]] = ring.Place{From: s[1], Known: s[2]}
	}
	if err := r.src.Resume(places); err != nil {
		return fmt.Errorf("take up position: %w", err)
	}
	r.trail.taken, r.trail.counted = p, p.Count
	if p.Rank != nil {
		r.takeUp(p.Rank)
	}
	return nil
}

// check reports why the position cannot be one of the ring.
func (p *Position) check(h *ring.Header) error {
	if p.Process != ProcessOf(h) {
		return errors.New("take up position: it is that of another process")
	}
	last := -1
	for _, s := range p.Lanes {
		if s[0] >= uint64(h.Lanes) || int(s[0]) <= last {
			return fmt.Errorf("take up position: got lane %d behind %d; want rising ones below %d", s[0], last, h.Lanes)
		}
		last = int(s[0])
	}
	if c := &p.Count; !counts(c.Read, c.Lost, c.Before, c.Skipped) {
		return fmt.Errorf("take up position: got counts of records %+v; want each from 0 to %d", *c, int64(maxKeptRecords))
	}
	if p.Rank == nil {
		return nil
	}
	return p.Rank.check()
}

// counts reports whether all numbers are counts of a ring's records.
func counts(all ...int64) bool {
	return !slices.ContainsFunc(all, func(n int64) bool { return n < 0 || n > maxKeptRecords })
}

// check reports why no reader can have kept it of a rank.
func (s *Settled) check() error {
	if s.Global < 0 || s.Closed < -1 || s.Anchor.Every < 0 || len(s.Open) > maxKeptSteps || len(s.Begins) > maxKeptSteps+keptBegins {
		return errors.New("take up position: got numbers that no rank has")
	}
	if !counts(s.Gap, s.Kernels.Folded) || s.Anchor.Step < -1 || s.Kernels.Newest < -1 {
		return errors.New("take up position: got negative numbers; want counts and steps")
	}
	if len(s.Groups) > maxGroups {
		return fmt.Errorf("take up position: got %d group launches; want at most %d", len(s.Groups), maxGroups)
	}
	if err := s.checkSteps(); err != nil {
		return err
	}
	return s.Loaded.check()
}

// checkSteps reports why the steps cannot be those of a rank.
func (s *Settled) checkSteps() error {
	closed := s.Closed
	for _, o := range s.Open {
		if !counts(o.Lost) {
			return fmt.Errorf("take up position: got %d lost records in step %d; want a count", o.Lost, o.N)
		}
		if o.N <= closed {
			return fmt.Errorf("take up position: got open step %d behind %d; want rising ones", o.N, closed)
		}
		closed = o.N
	}
	if !slices.IsSortedFunc(s.Begins, func(a, b StepBegin) int { return cmp.Compare(a.At, b.At) }) {
		return errors.New("take up position: the beginnings of steps are not in order")
	}
	if slices.ContainsFunc(s.Begins, func(b StepBegin) bool { return b.N < 0 }) {
		return errors.New("take up position: got the beginning of a negative step")
	}
	return nil
}

// check reports why a rank cannot have loaded it; nil is nothing loaded.
func (k *KeptResume) check() error {
	if k == nil {
		return nil
	}
	v := &k.Resume
	if v.Number < 1 || v.Step < 0 || k.Base > k.Raw {
		return errors.New("take up position: got numbers of what the rank loaded that no rank reports")
	}
	if len(v.Life) > model.MaxResumeLife || len(k.Incarnation) > cut.MaxLabel ||
		slices.ContainsFunc([]string{v.DataCursor, v.RNGDigest, v.Replica}, func(s string) bool { return len(s) > model.MaxResumeText }) {
		return errors.New("take up position: got texts of what the rank loaded that are too long")
	}
	return nil
}

// takeUp makes the rank what it was; the records of its open steps are replayed by the first pass.
func (r *Rank) takeUp(s *Settled) {
	r.global, r.world, r.life, r.ready = s.Global, s.World, s.Life, true
	r.epoch = r.node.takeEpoch(r.header.BootID, s.Epoch)
	r.worldComm = worldComm{hash: s.WorldHash, index: s.WorldIndex, size: s.WorldSize, ended: s.WorldEnded}
	r.marked, r.gap.records, r.standing.told = s.Marked, s.Gap, s.Stands
	t := &r.steps
	t.closed, t.prevEnd, t.lastBegin = s.Closed, s.PrevEnd, s.LastBegin
	for _, o := range s.Open {
		open := t.of(o.N)
		open.begin, open.lost = o.Begin, o.Lost
	}
	r.anchor.fn, r.anchor.every, r.anchor.step = s.Anchor.Func, s.Anchor.Every, s.Anchor.Step
	r.trail.placed, r.trail.kernels, r.trail.until = s.Anchor.Placed, s.Kernels.Folded, s.Kernels.Until
	k := &r.kernels
	k.newest, k.seenAt, k.launched, k.begins.forgotten = s.Kernels.Newest, s.Kernels.Seen, s.Kernels.Launched, true
	for _, b := range s.Begins {
		k.begins.list = append(k.begins.list, begun{at: b.At, n: b.N})
	}
	if s.Kernels.Clock != (gpuclock.Pair{}) {
		k.clock.Add(s.Kernels.Clock)
	}
	if l := s.Loaded; l != nil {
		r.loaded = resumeState{last: l.Resume, raw: l.Raw, base: l.Base}
		r.loaded.last.Rank = model.Rank{Incarnation: l.Incarnation}
	}
}

// takeEpoch returns the node's constant of a boot, which is the one given where it has none.
func (n *Node) takeEpoch(boot string, kept int64) int64 {
	if e, ok := n.epochs[boot]; ok {
		return e
	}
	if len(n.epochs) < maxBoots {
		n.epochs[boot] = kept
	}
	return kept
}

// kernelSlack is how far the launch of a kernel may be placed from where the reader before placed
// it, ns: what a clock drifts by in the half second between two readings. Kernels so close to the last that it folded are handed on once more rather than not at all.
const kernelSlack = 250_000

// replay folds again what the reader before had read of steps that it left open. What that had
// handed on is neither handed on nor counted once more.
func (r *Rank) replay() {
	p := r.trail.taken
	if p == nil {
		return
	}
	r.trail.taken = nil
	was := r.stats
	r.silent = true
	missing := r.poll(r.node.cfg.Level, r.handle)
	if s := p.Rank; s != nil {
		r.place(s.Anchor.Placed)
		r.groups.forget(s.Groups, r.scatter)
		r.placeKernels(s.Kernels.Until - min(s.Kernels.Until, kernelSlack))
	}
	r.silent = false
	r.stats = was.after(&r.stats)
	until := r.src.MissingUntil()
	if missing > 0 {
		r.steps.skipNumbers(missing, until)
	}
	if until == math.MaxUint64 { // the next poll tells
		r.gap.records += missing
		r.gap.ahead += missing
		return
	}
	r.lose(missing)
}

// after returns the counters after a replay. Only the counters of records that were read, and of
// steps that had to be closed, are new.
func (s Stats) after(now *Stats) Stats {
	s.Records, s.Lost, s.BeforeAttach, s.Skipped, s.Corrupt, s.Reread = now.Records, now.Lost, now.BeforeAttach, now.Skipped, now.Corrupt, now.Reread
	s.StepsClosed, s.StepsEvicted, s.Renumbered, s.Emitted, s.StepsMissing = now.StepsClosed, now.StepsEvicted, now.Renumbered, now.Emitted, now.StepsMissing
	return s
}

// skipNumbers leaves room for the numbers of operations that were handed on and could not be
// replayed, so that none is given twice. They are of steps that began until then.
func (t *stepTable) skipNumbers(n int64, until uint64) {
	for _, s := range t.open {
		if s.begin > until {
			continue
		}
		s.seqFrom = n
		for i := range s.keys {
			s.keys[i].seq += n
		}
	}
}
