// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"hash/maphash"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// node is one machine of which versions are told.
type node struct {
	key, id, name string
	life          int64     // of who tells
	revision      int64     // the highest that was heard in it
	heard         time.Time // then
	contested     time.Time // when somebody of an earlier life told of it, too
	sets          [domains]set
	mark          int64           // of whoever counts nodes
	prints        [domains]uint64 // of what counts, as of the last Tick
}

// domains is how many there are; one is its place in model.VersionDomains.
const domains = 11

var places = func() map[model.VersionDomain]int {
	m := map[model.VersionDomain]int{}
	for i, d := range model.VersionDomains {
		m[d] = i
	}
	return m
}()

// set is all versions of one domain of a node.
type set struct {
	revision int64
	entries  []entry
	// since and heard are when these were told first, with nothing else and no long silence between,
	// and last.
	since, heard time.Time
	// next is what was told under a higher revision, as long as it is a part.
	next    []entry
	nextRev int64
	nextOf  int64
	// print is equal where classes are; printNone and printUnits are none.
	print uint64
}

// Prints that say more than that they are equal.
const (
	printNone  = iota // nothing is known
	printUnits        // units of one model differ
	printFirst
)

// seed makes prints; they mean nothing outside of this process.
var seed = maphash.MakeSeed()

func (s *set) fingerprint() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range s.entries {
		e := &s.entries[i]
		if !alike(s.entries[i:]) || e.unit != "" {
			return printUnits
		}
		maphash.WriteComparable(&h, [2]string{e.model, e.class})
	}
	return max(h.Sum64(), printFirst)
}

// entry is one version.
type entry struct {
	unit, model, version, class string
}

// maxEntries bounds those of one domain of a node: as many units as are told.
const maxEntries = 256

// Observe takes one version of a node.
func (w *Watch) Observe(o *model.VersionObservation, now time.Time) {
	place, ok := places[o.Domain]
	if !ok || o.Version == "" || o.Of < 1 || o.Of > maxEntries || o.Revision < 1 || o.HostID == "" && o.HostName == "" || o.Domain.OfHardware() && o.Model == "" {
		w.stats.Refused++
		return
	}
	for _, text := range []string{o.HostID, o.HostName, o.Unit, o.Model, o.Version} {
		if len(text) > cut.MaxName {
			w.stats.Refused++
			return
		}
	}
	w.stats.Versions++
	if now.UnixNano()-o.Time > int64(w.cfg.Settle/4) { // it lay in a queue, or its node's clock is far behind
		w.stats.Late++
		return
	}
	n := w.node(o, now)
	if n == nil {
		return
	}
	w.take(&n.sets[place], o, now)
}

// node returns the node that an observation is of; nil where it does not count.
func (w *Watch) node(o *model.VersionObservation, now time.Time) *node {
	key := cmp.Or(o.HostID, o.HostName)
	n := w.nodes[key]
	switch {
	case n == nil && (len(w.nodes) >= w.cfg.MaxNodes || w.nodeBytes+nodeBytes+3*cut.MaxName > w.cfg.MaxBytes):
		w.stats.NodesRefused++
		return nil
	case n == nil:
		n = &node{key: key, id: o.HostID, name: o.HostName, life: o.Life}
		w.nodes[key] = n
		w.nodeBytes += nodeBytes + n.texts()
		w.moved++
	case o.Life > n.life, o.Life < n.life && now.Sub(n.heard) >= w.cfg.Silent: // or its clock was set back
		n.life, n.revision = o.Life, 0
		for i := range n.sets {
			n.sets[i].revision = 0
			w.drop(&n.sets[i])
		}
	case o.Life < n.life:
		// It may be late, or be of another machine of that id: nothing is known of either.
		w.stats.Late++
		n.contested = now
		return nil
	}
	if n.name != o.HostName {
		w.nodeBytes += len(o.HostName) - len(n.name)
		n.name = o.HostName
		w.moved++
	}
	if o.Revision > n.revision {
		n.revision, n.heard = o.Revision, now
	}
	return n
}

// take adds a version to what its look made, which counts once it is whole.
func (w *Watch) take(s *set, o *model.VersionObservation, now time.Time) {
	switch {
	case o.Revision <= s.revision, o.Revision < s.nextRev:
		w.stats.Late++
		return
	case o.Revision > s.nextRev:
		w.drop(s)
		s.nextRev, s.nextOf = o.Revision, o.Of
	case o.Of != s.nextOf:
		w.stats.Refused++
		return
	}
	e := entry{o.Unit, o.Model, o.Version, w.cfg.class(o.Domain, o.Version)}
	for _, text := range []*string{&e.unit, &e.model, &e.version, &e.class} {
		*text = intern(*text)
	}
	at, known := slices.BinarySearchFunc(s.next, e, byUnit)
	if known {
		return
	}
	if w.held >= w.cfg.MaxVersions || w.nodeBytes+e.size() > w.cfg.MaxBytes {
		w.stats.VersionsRefused++
		return
	}
	w.held++
	w.nodeBytes += e.size()
	s.next = slices.Insert(s.next, at, e)
	if int64(len(s.next)) == s.nextOf {
		w.turn(s, now)
	}
}

func byUnit(a, b entry) int {
	return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.unit, b.unit))
}

// turn makes what was told last what is known.
func (w *Watch) turn(s *set, now time.Time) {
	if !slices.Equal(s.entries, s.next) || now.Sub(s.heard) > w.cfg.Settle/2 {
		s.since = now // in between it may have been another
	}
	w.held -= len(s.entries)
	w.nodeBytes -= sizeOf(s.entries)
	s.entries, s.revision, s.heard = s.next, s.nextRev, now
	s.next, s.nextRev = nil, 0
	s.print = s.fingerprint()
}

// drop gives up the part of a look that was heard of.
func (w *Watch) drop(s *set) {
	w.held -= len(s.next)
	w.nodeBytes -= sizeOf(s.next)
	s.next, s.nextRev = nil, 0
}

// live reports whether what is known of a domain of a node counts.
func (w *Watch) live(n *node, s *set, now time.Time) bool {
	return len(s.entries) > 0 && now.Sub(s.heard) < w.cfg.Silent && (n.contested.IsZero() || now.Sub(n.contested) >= w.cfg.Silent)
}

// forgetNodes forgets those that fell silent long ago.
func (w *Watch) forgetNodes(now time.Time) {
	w.stats.Contested = 0
	for key, n := range w.nodes {
		switch {
		case now.Sub(n.heard) >= 2*w.cfg.Silent:
			for i := range n.sets {
				w.held -= len(n.sets[i].entries) + len(n.sets[i].next)
				w.nodeBytes -= sizeOf(n.sets[i].entries) + sizeOf(n.sets[i].next)
			}
			w.nodeBytes -= nodeBytes + n.texts()
			delete(w.nodes, key)
			w.moved++
		case !n.contested.IsZero() && now.Sub(n.contested) < w.cfg.Silent:
			w.stats.Contested++
		}
	}
	w.stats.Nodes = int64(len(w.nodes))
}

// namesakes finds nodes by their names, where only one has it.
func (w *Watch) namesakes() {
	if w.named == w.moved {
		return
	}
	w.named = w.moved
	clear(w.names)
	for _, n := range w.nodes {
		if n.name == "" {
			continue
		}
		if _, taken := w.names[n.name]; taken {
			w.names[n.name] = nil
			continue
		}
		w.names[n.name] = n
	}
}

// nodeOf returns the node that a rank is on; nil where that is not known for sure.
func (w *Watch) nodeOf(r *rank) *node {
	if r == nobody { // of all watches
		return nil
	}
	if r.placed == w.moved {
		return r.at
	}
	r.placed, r.at = w.moved, nil
	if n := w.nodes[r.hostID]; r.hostID != "" && n != nil {
		r.at = n
		return n
	}
	n := w.names[r.hostName]
	if n == nil || r.hostName == "" {
		return nil
	}
	// Who has no id of its own takes its name for one. Two that have are two hosts of one name.
	if r.hostID == "" || r.hostID == r.hostName || n.id == "" || n.id == n.name {
		r.at = n
	}
	return r.at
}
