// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// find finds what to open: of communicators whose members are all in another that is open, none.
func (w *Watch) find(now time.Time) {
	w.stats.Abstained = 0
	for _, s := range w.spans {
		s.covers = 0
	}
	varied := w.varied(now)
	for _, key := range slices.Sorted(maps.Keys(w.jobs)) {
		j := w.jobs[key]
		libraries := j.libraries()
		for _, c := range j.inOrder() {
			differ := varied
			w.glance(c, &differ, now)
			differ[placeNCCL] = libraries && c.nccl
			for place, may := range differ {
				if may {
					w.look(j, c, place, now)
				}
			}
		}
	}
}

// placeNCCL is that of the domain that nobody is judged by as nodes tell it: what a node tells is of
// whichever of its processes was asked, perhaps of another job. It is judged by what processes recorded.
var placeNCCL = places[model.VersionNCCL]

// glance leaves of the domains that differ somewhere those that may do so in a communicator. Where
// they do not, and nothing is known of a member, that is counted.
func (w *Watch) glance(c *comm, differ *[domains]bool, now time.Time) {
	if c.torn {
		return
	}
	var first [domains]uint64
	var known [domains]int
	var may [domains]bool
	for _, r := range c.members {
		n := w.nodeOf(r)
		if n == nil || now.Sub(r.heard) >= w.cfg.Silent {
			continue
		}
		for place, mark := range &n.prints {
			if mark == printNone {
				continue
			}
			if known[place]++; known[place] == 1 {
				first[place] = mark
			}
			may[place] = may[place] || mark == printUnits || mark != first[place]
		}
	}
	for place := range differ {
		if place == placeNCCL || !differ[place] || may[place] {
			continue
		}
		differ[place] = false
		if known[place] < len(c.members) {
			w.stats.Abstained++
		}
	}
}

// inOrder are the communicators, the largest first.
func (j *job) inOrder() []*comm {
	if j.order == nil {
		j.order = slices.SortedFunc(maps.Values(j.comms), func(a, b *comm) int {
			return cmp.Or(cmp.Compare(b.key.size, a.key.size), cmp.Compare(a.key.id, b.key.id), cmp.Compare(a.key.first, b.key.first))
		})
	}
	return j.order
}

// varied finds the domains in which what counts of nodes differs, of any job: in no other can a
// communicator span two classes.
func (w *Watch) varied(now time.Time) (differ [domains]bool) {
	var first [domains]uint64
	for _, n := range w.nodes {
		for place := range n.sets {
			s := &n.sets[place]
			mark := uint64(printNone)
			if w.live(n, s, now) {
				mark = s.print
			}
			n.prints[place] = mark
			switch {
			case mark == printNone:
			case first[place] == printNone:
				first[place] = mark
				differ[place] = mark == printUnits
			default:
				differ[place] = differ[place] || mark != first[place]
			}
		}
	}
	return differ
}

// libraries reports whether processes of a job have different versions of NCCL.
func (j *job) libraries() bool {
	one := ""
	for _, r := range j.ranks {
		switch {
		case r.nccl == "" || r.nccl == one:
		case one == "":
			one = r.nccl
		default:
			return true
		}
	}
	return false
}

// look opens a span where a communicator spans classes of a domain.
func (w *Watch) look(j *job, c *comm, place int, now time.Time) {
	if c.torn {
		w.stats.Abstained++
		return
	}
	a := w.assay(c, place, now)
	spans := false
	for i := range a.buckets {
		b := &a.buckets[i]
		if len(b.tallies) < 2 {
			continue
		}
		spans = true
		k := caseKey{j.key, c.key, place, b.model}
		began, sure := b.sure(w.cfg.Settle)
		switch {
		// Two jobs of one name look like one that mixes, until both have spoken.
		case w.spanOf(&k) != nil || !sure || now.Sub(j.since) < w.cfg.Settle || w.covered(k, c):
		default:
			w.begin(j, c, k, began, w.judgement(c, place, b, a.known, now), now)
		}
	}
	if !spans && a.known < len(c.members) {
		w.stats.Abstained++
	}
}
