// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"hash/maphash"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// seed makes signatures; they mean nothing outside of this process.
var seed = maphash.MakeSeed()

// rank is what is known of one rank of a job.
type rank struct {
	of    model.Rank
	heard time.Time // by this watch's clock, as all times here but those in ns
	comms map[string]*progress
	// completed is when the rank last completed an operation, Unix ns by its host.
	completed int64
	// moved is when it was last noticed that it had moved, after it had stood.
	moved time.Time

	states  map[model.StateSource]*held
	absence *model.Absence
	// absentAt is when the absence was told; by it alone the process is gone, unless its own state
	// says so.
	absentAt time.Time
	ownEnd   bool
	// came is when what it completed last was heard of; worked is when it was heard that
	// anything new was over, also at a time that is not believed, and newest its time.
	came, worked time.Time
	newest       int64
	// unplaced is when a state came that was of no time which can be.
	unplaced time.Time
	// host is the clock of its operations and of its own states, asked that of who asks RAS.
	host, asked hostClock
	// gone: its process was seen dead, or to have ended.
	gone bool

	phase      string    // of the newest state
	phaseSince time.Time // when it was noticed; zero where it was the first
	phaseFrom  int64     // Unix ns by its host

	opens  map[openKey]*model.OpenOp
	opened *opened // nil: the state is of all that was told

	bytes, noted int // that the job's share counts for it, and for its absence
}

// progress is how far a rank has come on a communicator, as its spans say.
type progress struct {
	comm  model.Comm
	ended int64     // Unix ns by its host at which an operation last completed
	came  time.Time // when that was heard of
	funcs map[string]*reached
}

type reached struct {
	scope model.SeqScope
	seq   int64
}

// held is the newest state of a rank of one source.
type held struct {
	state *model.RankState
	came  time.Time
	// all and done tell two states apart: in anything, and in what was completed or stands
	// first. allSince and doneSince are since when at the latest they are as they are.
	all, done           uint64
	allSince, doneSince time.Time
	// alike is how many states have come, in a row, in which nothing was completed; still in
	// which nothing was enqueued either.
	alike, still int
	heads        []head
	// before is the last state of the living process, of one that is gone.
	before *model.RankState
	// former is the answer of RAS before this one: both tell whether the rank moves.
	former *model.RankState
	// What each of the three states takes.
	bytes, beforeBytes, formerBytes int
}

// head is the operation that holds up a communicator, or a stream of it: the first in flight.
type head struct {
	comm  string
	name  string
	seq   int64
	since time.Time
}

// take keeps a state if it is newer than the one known, and reports whether it is.
func (r *rank) take(s *model.RankState, now time.Time) bool {
	old := r.states[s.Source]
	if !r.inTime(old, s, now) {
		r.unplaced = now
		return false
	}
	h := &held{state: s, came: now, alike: 1, still: 1}
	h.heads = r.headsOf(s, now)
	h.all, h.done = signatures(s, h.heads)
	// A clock that is set makes anything old: who was heard to complete something had not stood.
	h.allSince = later(r.local(s, max(s.LastEnqueue, r.completedBy(s)), now), r.came)
	h.doneSince = h.allSince
	for i := range h.heads {
		h.doneSince = later(h.doneSince, h.heads[i].since)
	}
	gone := s.Process == model.ProcessDead || s.Process == model.ProcessEnded
	if old != nil {
		h.follow(old)
		if s.Source == model.StateRAS {
			h.former = old.state
		}
		if gone {
			h.before = old.before
			if !r.gone {
				h.before = old.state
			}
		}
		if h.done != old.done && s.Source != model.StateFlightRecorder {
			r.moved, r.absence = now, nil
		}
	}
	if r.states == nil {
		r.states = map[model.StateSource]*held{}
	}
	r.states[s.Source] = h
	if gone || s.Process != "" {
		r.gone, r.ownEnd = gone, gone
	}
	if !gone && s.Process != "" && s.Source == model.StateRankEvents {
		r.absence = nil // it tells of itself
	}
	return true
}

// news is when anything was last heard of the rank that counts.
func (r *rank) news() time.Time {
	last := later(r.worked, r.moved)
	for _, h := range r.states {
		last = later(last, h.came)
	}
	if last.IsZero() {
		return r.heard
	}
	return last
}

// follow takes over since when what has not changed is as it is. What has changed did so
// after the state before.
func (h *held) follow(old *held) {
	if h.all == old.all {
		h.allSince, h.still = old.allSince, old.still+1
	} else {
		h.allSince = later(h.allSince, old.came)
	}
	if h.done == old.done {
		h.doneSince, h.alike = old.doneSince, old.alike+1
	} else {
		h.doneSince = later(h.doneSince, old.came)
	}
	for i := range h.heads {
		at := &h.heads[i]
		before, ok := old.head(at.comm, at.name)
		switch {
		case ok && before.seq == at.seq:
			at.since = before.since
		case ok:
			at.since = later(at.since, old.came)
		}
	}
}

func (h *held) head(comm, name string) (head, bool) {
	for i := range h.heads {
		if h.heads[i].comm == comm && h.heads[i].name == name {
			return h.heads[i], true
		}
	}
	return head{}, false
}

// standing is for how long the operation has stood that has held up a communicator longest;
// of any communicator where comm is empty.
func (h *held) standing(comm string, now time.Time) (longest time.Duration) {
	for i := range h.heads {
		if comm == "" || h.heads[i].comm == comm {
			longest = max(longest, now.Sub(h.heads[i].since))
		}
	}
	return longest
}

// maxHeads bounds the heads of one state that are followed: each is the first of its
// communicator and function, and those of one hang are few.
const maxHeads = 256

// headsOf are the first operations in flight, by communicator and name: collectives of one
// function complete in their order.
func (r *rank) headsOf(s *model.RankState, now time.Time) (heads []head) {
	type place struct {
		comm int
		name string
	}
	seen := map[place]bool{}
	for i := range s.Ops {
		o := &s.Ops[i]
		if o.Done || o.Comm < 0 || o.Comm >= len(s.Comms) || seen[place{o.Comm, o.Name}] || len(heads) >= maxHeads {
			continue
		}
		seen[place{o.Comm, o.Name}] = true
		comm := s.Comms[o.Comm].Comm.ID
		since := o.Created
		if p := r.comms[comm]; p != nil && (s.Time == 0 || p.ended <= s.Time) {
			since = max(since, p.ended) // until then it waited for those before it
		}
		heads = append(heads, head{comm: comm, name: o.Name, seq: o.Seq, since: later(r.local(s, since, now), r.cameOn(comm))})
	}
	return heads
}

// cameOn is when an operation that the rank completed on a communicator was last heard of.
func (r *rank) cameOn(comm string) time.Time {
	if p := r.comms[comm]; p != nil {
		return p.came
	}
	return time.Time{}
}

// local places a time of the rank's host, before its state was taken, on this watch's clock.
func (r *rank) local(s *model.RankState, at int64, now time.Time) time.Time {
	if at <= 0 || s.Time <= at {
		return now
	}
	return now.Add(-time.Duration(s.Time - at))
}

// completedBy is when the rank last completed an operation before its state was taken.
func (r *rank) completedBy(s *model.RankState) int64 {
	if s.Time != 0 && r.completed > s.Time {
		return 0
	}
	return r.completed
}

func signatures(s *model.RankState, heads []head) (all, done uint64) {
	var a, d maphash.Hash
	a.SetSeed(seed)
	d.SetSeed(seed)
	for i := range s.Comms {
		c := &s.Comms[i]
		for k := range c.Frontiers {
			f := &c.Frontiers[k]
			maphash.WriteComparable(&d, [2]string{c.Comm.ID, f.Func})
			maphash.WriteComparable(&d, f.Completed)
			if s.Source == model.StateRAS { // it knows launches only
				maphash.WriteComparable(&d, f.Enqueued)
			}
			maphash.WriteComparable(&a, f.Enqueued)
		}
	}
	for i := range heads {
		maphash.WriteComparable(&d, [2]string{heads[i].comm, heads[i].name})
		maphash.WriteComparable(&d, heads[i].seq)
	}
	for i := range s.Ops {
		if o := &s.Ops[i]; !o.Done {
			maphash.WriteComparable(&a, [2]int64{int64(o.Comm), o.Seq})
		}
	}
	maphash.WriteComparable(&a, d.Sum64())
	return a.Sum64(), d.Sum64()
}

// live is the state of a rank that counts now, of those that tell of the present: its own
// before what RAS counts; nil where there is none.
func (r *rank) live(now time.Time, cfg *Config) *held {
	for _, source := range []model.StateSource{model.StateRankEvents, model.StateRAS} {
		if h := r.states[source]; h != nil && !r.stale(h, now, cfg) {
			return h
		}
	}
	return nil
}

// stale: nothing was heard of it for long, or the rank has completed something since. A
// process that is gone stays gone.
func (r *rank) stale(h *held, now time.Time, cfg *Config) bool {
	if h.state.Process == model.ProcessDead || h.state.Process == model.ProcessEnded {
		return false
	}
	return now.Sub(h.came) > h.ttl(cfg) || h.state.Time != 0 && r.completed > h.state.Time
}

// rasAnswers is how many times as rarely RAS is asked as states of ranks come.
const rasAnswers = 3

// ttl is for how long the state counts: as long as its source takes to send the next.
func (h *held) ttl(cfg *Config) time.Duration {
	switch {
	case h.state.Source == model.StateRAS:
		return rasAnswers * cfg.StateTTL
	case h.state.Name == fromEvents:
		return openRepeat + cfg.StateTTL
	}
	return cfg.StateTTL
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
