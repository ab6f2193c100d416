// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// tally counts those of one class.
type tally struct {
	class    string
	versions []string
	nodes    int
	ranks    int
	first    string
	// since and heard are of the one that was heard last of those heard long enough.
	since, heard time.Time
}

// bucket is one model of one domain in one communicator: what compares.
type bucket struct {
	model   string
	tallies []tally
}

// maxClasses bounds the classes that are counted apart; what is beyond mixes all the same.
const maxClasses = 64

// assay is what is known of one domain of one communicator.
type assay struct {
	buckets []bucket
	known   int // ranks of which the version is known
}

// value is one version of one rank.
type value struct {
	*entry
	since, heard time.Time
}

// values are the versions that a rank has in a domain, until the next call, and whether they are
// known.
func (w *Watch) values(r *rank, place int, now time.Time) ([]value, bool) {
	out := w.buf[:0]
	defer func() { w.buf = out[:0] }()
	if place == placeNCCL {
		told := r.sources[sourceOf(model.StateFlightRecorder)].told
		if r.nccl == "" || now.Sub(told) >= w.cfg.Silent {
			return nil, false
		}
		// A process has one for as long as it lives, and recorded it itself.
		out = append(out, value{&entry{version: r.nccl, class: w.cfg.class(model.VersionNCCL, r.nccl)}, time.Time{}, told})
		return out, true
	}
	n := w.nodeOf(r)
	if n == nil || now.Sub(r.heard) >= w.cfg.Silent || !w.live(n, &n.sets[place], now) {
		return nil, false
	}
	s := &n.sets[place]
	if r.hwid != "" {
		for i := range s.entries {
			if e := &s.entries[i]; e.unit == r.hwid {
				out = append(out, value{e, s.since, s.heard})
				return out, true
			}
		}
	}
	sure := true
	for i := range s.entries {
		switch {
		case i > 0 && s.entries[i].model == s.entries[i-1].model:
		case alike(s.entries[i:]):
			out = append(out, value{&s.entries[i], s.since, s.heard})
		default: // which of its units the rank uses is not known
			sure = false
		}
	}
	return out, sure
}

// alike reports whether all units of the first one's model are of one class.
func alike(of []entry) bool {
	for i := 1; i < len(of) && of[i].model == of[0].model; i++ {
		if of[i].class != of[0].class {
			return false
		}
	}
	return true
}

// assay looks at one domain of a communicator. What it returns holds until the next call.
func (w *Watch) assay(c *comm, place int, now time.Time) *assay {
	a := &w.scratch
	a.known, a.buckets = 0, a.buckets[:0]
	w.marks++
	for _, r := range c.members {
		fresh := true // a node is counted once
		if n := w.nodeOf(r); n != nil {
			fresh, n.mark = n.mark != w.marks, w.marks
		}
		values, known := w.values(r, place, now)
		for _, v := range values {
			a.count(r, v, fresh, w.cfg.Settle)
		}
		if known {
			a.known++
		}
	}
	for i := range a.buckets {
		if t := a.buckets[i].tallies; len(t) > 1 {
			slices.SortFunc(t, func(x, y tally) int {
				return cmp.Or(cmp.Compare(y.nodes, x.nodes), cmp.Compare(y.ranks, x.ranks), cmp.Compare(x.class, y.class))
			})
		}
	}
	return a
}

func (a *assay) count(r *rank, v value, fresh bool, settle time.Duration) {
	b := a.bucket(v.model)
	at := slices.IndexFunc(b.tallies, func(t tally) bool { return t.class == v.class })
	if at < 0 {
		if len(b.tallies) >= maxClasses {
			return
		}
		at = len(b.tallies)
		b.tallies = grown(b.tallies)
		t := &b.tallies[at]
		*t = tally{class: v.class, first: r.host(), versions: t.versions[:0]}
	}
	t := &b.tallies[at]
	t.ranks++
	if fresh {
		t.nodes++
	}
	if i, known := slices.BinarySearch(t.versions, v.version); !known && len(t.versions) < maxVersions {
		t.versions = slices.Insert(t.versions, i, v.version)
	}
	long := v.heard.Sub(v.since) >= settle
	if later := v.heard.After(t.heard) || v.heard.Equal(t.heard) && v.since.Before(t.since); long && later {
		t.since, t.heard = v.since, v.heard
	}
}

func (a *assay) bucket(of string) *bucket {
	at := slices.IndexFunc(a.buckets, func(b bucket) bool { return b.model == of })
	if at < 0 {
		at = len(a.buckets)
		a.buckets = grown(a.buckets)
		b := &a.buckets[at]
		b.model, b.tallies = of, b.tallies[:0]
	}
	return &a.buckets[at]
}

// grown returns a list with one element more, which is as it was left where there was one before.
func grown[T any](list []T) []T {
	if len(list) < cap(list) {
		return list[:len(list)+1]
	}
	var zero T
	return append(list, zero)
}

// host names where a rank runs.
func (r *rank) host() string { return cmp.Or(r.hostName, r.hostID) }

// sure reports whether two classes were there at once: whether a node of each was heard to be of it
// over a common span; since is when that begins.
func (b *bucket) sure(settle time.Duration) (since time.Time, ok bool) {
	for i := range b.tallies {
		for k := range i {
			x, y := &b.tallies[i], &b.tallies[k]
			if x.heard.IsZero() || y.heard.IsZero() {
				continue
			}
			from, to := later(x.since, y.since), x.heard
			if y.heard.Before(to) {
				to = y.heard
			}
			if to.Sub(from) >= settle && (!ok || from.Before(since)) {
				since, ok = from, true
			}
		}
	}
	return since, ok
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// judgement is what people are told of a bucket.
func (w *Watch) judgement(c *comm, place int, b *bucket, known int, now time.Time) Judgement {
	j := Judgement{Model: b.model, Ranks: len(c.members), Known: known}
	for i := range b.tallies {
		t := &b.tallies[i]
		j.Held = append(j.Held, Held{slices.Clone(t.versions), t.nodes, t.ranks, t.first})
	}
	if len(b.tallies) < 2 {
		return j
	}
	most := b.tallies[0].class
	for _, r := range c.members {
		values, _ := w.values(r, place, now)
		if !slices.ContainsFunc(values, func(v value) bool { return v.model == b.model && v.class != most }) {
			continue
		}
		j.MinorityCount++
		j.Minority = append(j.Minority, r.n)
		if len(j.MinorityHosts) < maxHosts && !slices.Contains(j.MinorityHosts, r.host()) {
			j.MinorityHosts = append(j.MinorityHosts, r.host())
		}
	}
	slices.Sort(j.Minority)
	j.Minority = slices.Clone(j.Minority[:min(len(j.Minority), maxMinority)])
	return j
}

const (
	// maxHosts bounds the hosts of the minority that are named.
	maxHosts = 8
	// maxMinority bounds its ranks: as many as a finding lists.
	maxMinority = 64
)
