// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/bounded"
	"github.com/lockstep-otel/lockstep/internal/finding"
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
	book  *finding.Book[struct{}]
	spans []*span // those of findings that are open, by their keys

	moved, named int64 // changes of nodes and their names, and up to which names are known
	marks        int64 // counts of nodes
	buf          []value
	scratch      assay
	// held are the versions of all nodes; ranks, comms and members those of all jobs.
	held, ranks, comms, members int
	nodeBytes, spanBytes        int // of nodes and their versions, and of spans
	stats                       Stats
}

// caseKey is what a finding is about.
type caseKey struct {
	job   string
	comm  commKey
	place int // of the domain
	model string
}

// span is a communicator that spans classes.
type span struct {
	key               caseKey
	place             finding.Place
	jobName, commName string
	judgement         Judgement
	// covers is how many other communicators of the job, whose members are all in this one, span
	// classes, too.
	covers int
	ranks  []int64   // of the communicator, ascending
	began  time.Time // since when it spans them, as far as was observed
	mixed  time.Time // when it was last seen to
	fresh  bool      // it is to be reported
	// least is, after a restart, of how many ranks the version must be known until a judgement replaces
	// the one of before.
	least int
}

func (s *span) domain() model.VersionDomain { return model.VersionDomains[s.key.place] }

// New returns a watch that has heard nothing.
func New(cfg Config) *Watch {
	return &Watch{
		cfg: cfg, nodes: map[string]*node{}, names: map[string]*node{}, jobs: map[string]*job{}, moved: 1,
		book: finding.New[struct{}](finding.Config{MaxOpen: cfg.MaxEpisodes, MaxBytes: maxOpenBytes}),
	}
}

// Stats returns the counters.
func (w *Watch) Stats() Stats {
	s, of := w.stats, w.book.Stats()
	s.Opened, s.Closed, s.Withheld = of.Opened, of.Closed, of.Withheld
	s.Bytes = int64(w.room.Bytes() + w.nodeBytes + w.spanBytes)
	return s
}

// Tick judges, and returns the findings that were opened, updated or closed.
func (w *Watch) Tick(now time.Time) []model.Finding {
	w.forgetNodes(now)
	w.forgetJobs(now)
	w.namesakes()
	w.recall(now)
	w.settle(now)
	w.find(now)
	for _, s := range slices.Clone(w.spans) {
		if s.fresh {
			s.fresh = false
			if w.book.Found(s.place, 0, s.finding(now), now) == nil {
				w.leave(s)
			}
		}
	}
	return w.book.Take()
}

func compareSpans(a, b *span) int { return compareKeys(&a.key, &b.key) }

func compareKeys(a, b *caseKey) int {
	return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.place, b.place), cmp.Compare(a.model, b.model),
		cmp.Compare(b.comm.size, a.comm.size), cmp.Compare(a.comm.id, b.comm.id), cmp.Compare(a.comm.first, b.comm.first))
}

// settle updates what is open, and closes what has ended: the communicator is gone, or all of its
// members are known to be of one class. That members are known no more ends it after twice Silent.
func (w *Watch) settle(now time.Time) {
	for _, s := range slices.Clone(w.spans) {
		if !w.over(s, now) && now.Sub(s.mixed) < 2*w.cfg.Silent {
			continue
		}
		w.leave(s)
		if e := w.book.At(s.place); e != nil {
			w.book.Refresh(e, s.finding(now))
			w.book.Close(e, now.UnixNano())
		}
	}
}

// over looks at a span again, and reports whether it has ended.
func (w *Watch) over(s *span, now time.Time) bool {
	var c *comm
	if j := w.jobs[s.key.job]; j != nil {
		c = j.comms[s.key.comm]
	}
	if c == nil || c.torn {
		return true
	}
	a := w.assay(c, s.key.place, now)
	b := a.bucket(s.key.model)
	if len(b.tallies) < 2 {
		return a.known == len(c.members)
	}
	s.mixed = now
	if a.known < s.least {
		return false
	}
	s.least = 0
	if j := w.judgement(c, s.key.place, b, a.known, now); !same(&j, &s.judgement) {
		w.spanBytes -= s.size()
		s.judgement, s.fresh = j, true
		w.spanBytes += s.size()
	}
	return false
}

// leave forgets a span.
func (w *Watch) leave(s *span) {
	w.spans = slices.DeleteFunc(w.spans, func(o *span) bool { return o == s })
	w.spanBytes -= s.size()
}

// same reports whether two judgements say the same to people, but for how many are known.
func same(a, b *Judgement) bool {
	return a.MinorityCount == b.MinorityCount && slices.Equal(a.Minority, b.Minority) && slices.EqualFunc(a.Held, b.Held, func(x, y Held) bool {
		return x.Nodes == y.Nodes && x.Ranks == y.Ranks && slices.Equal(x.Versions, y.Versions)
	})
}

// begin takes a communicator that spans classes.
func (w *Watch) begin(j *job, c *comm, k caseKey, began time.Time, judged Judgement, now time.Time) {
	if began.IsZero() {
		began = now
	}
	s := &span{
		key: k, place: placeOf(j, &k), jobName: j.name, commName: c.name, judgement: judged, began: began, mixed: now, fresh: true,
	}
	if !w.enter(s, c) {
		w.book.Withhold(s.place, now)
	}
}

// enter follows a span; false where there is no room.
func (w *Watch) enter(s *span, c *comm) bool {
	for _, r := range c.members {
		if r != nobody {
			s.ranks = append(s.ranks, r.n)
		}
	}
	slices.Sort(s.ranks)
	if len(w.spans) >= w.cfg.MaxEpisodes || w.spanBytes+s.size() > maxOpenBytes {
		return false
	}
	w.spanBytes += s.size()
	at, _ := slices.BinarySearchFunc(w.spans, s, compareSpans)
	w.spans = slices.Insert(w.spans, at, s)
	return true
}

// spanOf returns the span of a case; nil where there is none.
func (w *Watch) spanOf(k *caseKey) *span {
	at, found := slices.BinarySearchFunc(w.spans, k, func(s *span, k *caseKey) int { return compareKeys(&s.key, k) })
	if !found {
		return nil
	}
	return w.spans[at]
}

// ofDriver are domains that change with the driver of the kernel.
var ofDriver = map[model.VersionDomain]bool{model.VersionUserDriver: true, model.VersionCUDA: true, model.VersionGSP: true}

// covered reports whether a case is told with another: of a communicator that has all the members,
// or with the driver that brings the domain's versions.
func (w *Watch) covered(k caseKey, c *comm) bool {
	first, _ := slices.BinarySearchFunc(w.spans, k.job, func(s *span, job string) int { return cmp.Compare(s.key.job, job) })
	for _, s := range w.spans[first:] {
		if s.key.job != k.job {
			break
		}
		same := s.key.place == k.place && s.key.model == k.model
		driver := s.domain() == model.VersionKernelDriver && ofDriver[model.VersionDomains[k.place]]
		if !same && !driver || !s.contains(c) {
			continue
		}
		if same {
			s.covers++
		}
		return true
	}
	return false
}

func (s *span) contains(c *comm) bool {
	for _, r := range c.members {
		if _, ok := slices.BinarySearch(s.ranks, r.n); !ok && r != nobody {
			return false
		}
	}
	return true
}

// Standing returns the findings that are open, with how many communicators each covers now.
func (w *Watch) Standing(now time.Time) []model.Finding {
	for _, s := range w.spans {
		if e := w.book.At(s.place); e != nil {
			w.book.Refresh(e, s.finding(now))
		}
	}
	return w.book.Standing(now)
}

// Snapshot returns the findings, to be kept over a restart.
func (w *Watch) Snapshot() ([]byte, error) { return w.book.Snapshot() }

// Restore takes what Snapshot returned, before anything is observed.
func (w *Watch) Restore(data []byte, now time.Time) error { return w.book.Restore(data, now) }
