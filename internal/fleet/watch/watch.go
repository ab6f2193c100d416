// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Watch follows the versions of any number of nodes, and the communicators of any number of jobs. It
// is not safe for concurrent use. Times that it is given are of one clock, that of who uses it.
type Watch struct {
	cfg   Config
	nodes map[string]*node
	names map[string]*node // by name; nil where several have it
	jobs  map[string]*job
	room  bounded.Room[*job]
	open  map[caseKey]*episode
	order []*episode // those that are open, by their keys

	moved, named int64 // changes of nodes and their names, and up to which names are known
	marks        int64 // counts of nodes
	buf          []value
	scratch      assay
	// held are the versions of all nodes; ranks, comms and members those of all jobs.
	held, ranks, comms, members int
	nodeBytes, openBytes        int // of nodes and their versions, and of open episodes
	stats                       Stats
}

// caseKey is what an episode is about.
type caseKey struct {
	job   string
	comm  commKey
	place int // of the domain
	model string
}

type episode struct {
	Episode
	key   caseKey
	ranks []int64   // of the communicator, ascending
	mixed time.Time // when it was last seen to span classes
	fresh bool      // it is to be told
}

// New returns a watch that has heard nothing.
func New(cfg Config) *Watch {
	return &Watch{cfg: cfg, nodes: map[string]*node{}, names: map[string]*node{}, jobs: map[string]*job{}, open: map[caseKey]*episode{}, moved: 1}
}

// Stats returns the counters.
func (w *Watch) Stats() Stats {
	s := w.stats
	s.Bytes = int64(w.room.Bytes() + w.nodeBytes + w.openBytes)
	return s
}

// Tick judges, and returns the episodes that were opened, updated or closed.
func (w *Watch) Tick(now time.Time) (out []Episode) {
	w.forgetNodes(now)
	w.forgetJobs(now)
	w.namesakes()
	out = w.settle(now)
	w.find(now)
	for _, e := range w.order {
		if e.fresh {
			e.fresh = false
			out = append(out, e.Episode)
		}
	}
	return out
}

func compareEpisodes(a, b *episode) int { return compareKeys(&a.key, &b.key) }

func compareKeys(a, b *caseKey) int {
	return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.place, b.place), cmp.Compare(a.model, b.model),
		cmp.Compare(b.comm.size, a.comm.size), cmp.Compare(a.comm.id, b.comm.id), cmp.Compare(a.comm.first, b.comm.first))
}

// settle updates what is open, and closes what has ended: the communicator is gone, or all of its
// members are known to be of one class. That members are known no more ends it after twice Silent.
func (w *Watch) settle(now time.Time) (closed []Episode) {
	stay := w.order[:0]
	for _, e := range w.order {
		var c *comm
		if j := w.jobs[e.key.job]; j != nil {
			c = j.comms[e.key.comm]
		}
		over := true
		if c != nil && !c.torn {
			a := w.assay(c, e.key.place, now)
			b := a.bucket(e.key.model)
			if over = len(b.tallies) < 2 && a.known == len(c.members); len(b.tallies) > 1 {
				e.mixed = now
				if j := w.judgement(c, e.key.place, b, a.known, now); !same(&j, &e.Judgement) {
					w.openBytes -= e.size()
					e.Judgement, e.Revision, e.fresh = j, e.Revision+1, true
					w.openBytes += e.size()
				}
			}
		}
		if !over && now.Sub(e.mixed) < 2*w.cfg.Silent {
			stay = append(stay, e)
			continue
		}
		delete(w.open, e.key)
		w.openBytes -= e.size()
		w.stats.Closed++
		e.Ended, e.Revision = now, e.Revision+1
		closed = append(closed, e.Episode)
	}
	clear(w.order[len(stay):])
	w.order = stay
	return closed
}

// same reports whether two judgements say the same to people, but for how many are known.
func same(a, b *Judgement) bool {
	return a.MinorityCount == b.MinorityCount && slices.Equal(a.Minority, b.Minority) && slices.EqualFunc(a.Held, b.Held, func(x, y Held) bool {
		return x.Nodes == y.Nodes && x.Ranks == y.Ranks && slices.Equal(x.Versions, y.Versions)
	})
}

func (w *Watch) begin(j *job, c *comm, k caseKey, began time.Time, judged Judgement, now time.Time) {
	if began.IsZero() {
		began = now
	}
	e := &episode{key: k, mixed: now, fresh: true, Episode: Episode{
		Job: cmp.Or(j.id, j.key), JobName: j.name, Incarnation: j.key, CommID: c.key.id, CommName: c.name, First: c.key.first,
		Domain: model.VersionDomains[k.place], Judgement: judged, Began: began, Revision: 1,
	}}
	for _, r := range c.members {
		if r != nobody {
			e.ranks = append(e.ranks, r.n)
		}
	}
	slices.Sort(e.ranks)
	if w.openBytes+e.size() > maxOpenBytes {
		w.stats.Withheld++
		return
	}
	w.openBytes += e.size()
	w.open[k] = e
	at, _ := slices.BinarySearchFunc(w.order, e, compareEpisodes)
	w.order = slices.Insert(w.order, at, e)
	w.stats.Opened++
}

// ofDriver are domains that change with the driver of the kernel.
var ofDriver = map[model.VersionDomain]bool{model.VersionUserDriver: true, model.VersionCUDA: true, model.VersionGSP: true}

// covered reports whether a case is told with another: of a communicator that has all the members,
// or with the driver that brings the domain's versions.
func (w *Watch) covered(k caseKey, c *comm) bool {
	first, _ := slices.BinarySearchFunc(w.order, k.job, func(e *episode, job string) int { return cmp.Compare(e.key.job, job) })
	for _, e := range w.order[first:] {
		if e.key.job != k.job {
			break
		}
		same := e.key.place == k.place && e.key.model == k.model
		driver := e.Domain == model.VersionKernelDriver && ofDriver[model.VersionDomains[k.place]]
		if !same && !driver || !e.contains(c) {
			continue
		}
		if same {
			e.Covers++
		}
		return true
	}
	return false
}

func (e *episode) contains(c *comm) bool {
	for _, r := range c.members {
		if _, ok := slices.BinarySearch(e.ranks, r.n); !ok && r != nobody {
			return false
		}
	}
	return true
}

// Standing returns the episodes that are open.
func (w *Watch) Standing() (all []Episode) {
	for _, e := range w.order {
		all = append(all, e.Episode)
	}
	return all
}
