// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"math"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// maxJobs bounds the jobs that are remembered: four for each of the 64 endpoints that may be
// asked, the jobs of one node's users and the incarnations that they leave behind. With fewer
// than there are, each would be new at every poll.
const maxJobs = 256

// Tracker says which answers are told of. The processes of several jobs on one node share an
// address and answer in turn; each job is remembered apart.
type Tracker struct {
	// Interval is how often is asked: a second answer of a job in less than half of it, from
	// another address, says nothing new.
	Interval time.Duration
	// Heartbeat is how often an answer is told of that says nothing new.
	Heartbeat time.Duration

	jobs *bounded.Map[string, *seen] // by incarnation, by when they answered last; nil: none did
}

// seen is what is remembered of a job.
type seen struct {
	at, told time.Time
	launched map[int64]int64 // over all communicators, by rank
	faults   map[fault]bool
}

// fault is an absence or a fact.
type fault struct {
	rank       int64
	kind, what string
}

// Evicted is how many jobs were forgotten for want of room.
func (t *Tracker) Evicted() int64 { return t.remembered().Evicted() }

func (t *Tracker) remembered() *bounded.Map[string, *seen] {
	if t.jobs == nil {
		t.jobs = bounded.NewMap(bounded.MapConfig[string, *seen]{Entries: maxJobs, Order: bounded.ByUse})
	}
	return t.jobs
}

// Tell reports whether to tell of an answer: the first of a job and each Heartbeat, where
// members of a communicator have launched different numbers of operations, where a rank has
// launched none since the last, and where absences or errors are others than before.
func (t *Tracker) Tell(j *Job, now time.Time) bool {
	s, known := t.remembered().Peek(j.Incarnation)
	if known && now.Sub(s.at) < t.Interval/2 {
		return false
	}
	if !known {
		s = &seen{}
	}
	t.jobs.Set(j.Incarnation, s)
	launched, faults := j.launched(), j.faults()
	tell := s.told.IsZero() || now.Sub(s.told) >= t.Heartbeat || stands(s.launched, launched) || differ(s.faults, faults) || j.uneven()
	s.at, s.launched, s.faults = now, launched, faults
	if tell {
		s.told = now
	}
	return tell
}

// Refused takes back that an answer was told of: the next one of the job is.
func (t *Tracker) Refused(j *Job) {
	if s, ok := t.remembered().Peek(j.Incarnation); ok {
		s.told = time.Time{}
	}
}

func (j *Job) launched() map[int64]int64 {
	sums := make(map[int64]int64, len(j.States))
	for i := range j.States {
		sum := int64(0)
		for k := range j.States[i].Comms {
			for _, f := range j.States[i].Comms[k].Frontiers {
				sum = add(sum, f.Enqueued.V+1)
			}
		}
		sums[j.States[i].Rank.Rank] = sum
	}
	return sums
}

// stands reports whether a rank that had launched something has launched nothing since.
func stands(before, now map[int64]int64) bool {
	for rank, n := range now {
		if was, ok := before[rank]; ok && was == n && n > 0 {
			return true
		}
	}
	return false
}

func (j *Job) faults() map[fault]bool {
	all := make(map[fault]bool, len(j.Absent)+len(j.Facts))
	for i := range j.Absent {
		all[fault{j.Absent[i].Rank, string(j.Absent[i].Reason), ""}] = true
	}
	for i := range j.Facts {
		all[fault{j.Facts[i].Rank.Rank, j.Facts[i].Kind, j.Facts[i].What}] = true
	}
	return all
}

func differ(before, now map[fault]bool) bool {
	if len(before) != len(now) {
		return true
	}
	for f := range now {
		if !before[f] {
			return true
		}
	}
	return false
}

// uneven reports whether members of a communicator have launched different numbers of a
// function.
func (j *Job) uneven() bool {
	type place struct{ comm, fn string }
	type spread struct {
		least, most int64
		members     int
		size        int64
	}
	all := map[place]*spread{}
	for i := range j.States {
		for k := range j.States[i].Comms {
			c := &j.States[i].Comms[k]
			for _, f := range c.Frontiers {
				at := place{c.Comm.ID, f.Func}
				n := all[at]
				if n == nil {
					n = &spread{least: f.Enqueued.V, most: f.Enqueued.V, size: c.Comm.Size.V}
					all[at] = n
				}
				n.least, n.most = min(n.least, f.Enqueued.V), max(n.most, f.Enqueued.V)
				n.members++
			}
		}
	}
	for _, n := range all {
		// Who has launched none has no number.
		if n.least != n.most || int64(n.members) < n.size {
			return true
		}
	}
	return false
}

// Launched is how many operations of a function a rank has launched on all communicators.
type Launched struct {
	Rank int64
	Func string
	N    int64
}

// Launched sums up the counts by rank and function, in order.
func (j *Job) Launched() []Launched {
	var out []Launched
	for i := range j.States {
		s := &j.States[i]
		first := len(out)
		for k := range s.Comms {
			for _, f := range s.Comms[k].Frontiers {
				out = addLaunched(out, first, s.Rank.Rank, &f)
			}
		}
	}
	return out
}

func addLaunched(out []Launched, first int, rank int64, f *model.Frontier) []Launched {
	for i := first; i < len(out); i++ {
		if out[i].Func == f.Func {
			out[i].N = add(out[i].N, f.Enqueued.V+1)
			return out
		}
	}
	return append(out, Launched{Rank: rank, Func: f.Func, N: f.Enqueued.V + 1})
}

// add adds counts; a sum that has no room stays at the greatest number.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
