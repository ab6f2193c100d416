// SPDX-License-Identifier: Apache-2.0

package ckptwatch

import (
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// Config says what a folder is of, and how it is told of.
type Config struct {
	JobID string
	// Observer names who looks, Life which of its lives it is, the later the greater.
	Observer string
	Life     int64
	// Where is added to what domains are called, of a folder that holds a part of each save, as a
	// node's own disk does: "of node7". Empty: the folder holds all of each save.
	Where string
	// Places is in how many such folders the parts of a save lie; 0: not known, so that no save is
	// known to be whole. It is nothing without Where.
	Places int64
	// World is how many ranks write a save, where no save says it; 0: not known.
	World int64
	// Heartbeat is how often all is told again.
	Heartbeat time.Duration
	// MaxDomains bounds the domains of all saves that are followed, of bytesOfDomain each on average.
	MaxDomains int
}

// Stats count what was not told.
type Stats struct {
	Unnamed int64 // saves of which nothing says the epoch, at each look
	Dropped int64 // domains beyond Config.MaxDomains, at each look
	Held    int64 // changes for the worse that were held back until seen again
	Partial int64 // looks that did not see the whole folder
}

// Watcher follows one folder. It is not safe for concurrent use.
type Watcher struct {
	cfg     Config
	domains map[key]*seen
	// withdrawn was told of sets of domains of which it is not.
	withdrawn map[withdrawn]*seen
	// confirmed are the domains that have confirmed an epoch, whichever.
	confirmed map[model.Domain]bool
	bytes     int    // of domains and withdrawn, by estimate
	last      string // generation
	revision  int64
	blind     bool      // the last look did not see the whole folder
	beat      time.Time // when all was told last
	stats     Stats
}

type key struct {
	save   int64
	domain model.Domain
}

type withdrawn struct {
	key
	generation string
}

// seen is what was told of a domain, and what may have to be told.
type seen struct {
	said model.EpochObservation
	// worse: what it was last, if that is less than it was told to be, and was seen once.
	worse *model.EpochObservation
	// held is the epoch that it has confirmed last: what it loses when it is there no more, however it goes.
	held   model.Optional[int64]
	told   bool // said was taken by who is told
	look   int64
	absent int // heartbeats since it was there
}

func (s *seen) place() bool { return s.said.Domain.Kind == model.DomainPlace }

// goneFor is for how many heartbeats it is told of a domain that is there no more.
const goneFor = 3

// New returns a watcher that has seen nothing.
func New(cfg Config) *Watcher {
	return &Watcher{cfg: cfg, domains: map[key]*seen{}, withdrawn: map[withdrawn]*seen{}, confirmed: map[model.Domain]bool{}}
}

// Stats returns the counters.
func (w *Watcher) Stats() Stats { return w.stats }

// Len is how many domains are followed.
func (w *Watcher) Len() int { return len(w.domains) + len(w.withdrawn) }

// Look takes what a folder holds, and returns what is to be told of it, in a fixed order.
func (w *Watcher) Look(root *ckpt.Root, now time.Time) []model.EpochObservation {
	w.revision++
	w.observations(root, now)
	w.blind = !whole(root)
	if w.blind {
		w.stats.Partial++
	} else {
		w.vanish(root, now)
	}
	return w.due(now)
}

// Refused takes back that what was returned last was told: it is told with the next look. Who is
// told in parts is told no part behind one that was refused.
func (w *Watcher) Refused(obs []model.EpochObservation) {
	for i := range obs {
		k := key{obs[i].Save, obs[i].Domain}
		s := w.domains[k]
		if obs[i].State == model.DomainWithdrawn {
			s = w.withdrawn[withdrawn{k, obs[i].Generation}]
		}
		if s != nil {
			s.told = false
		}
	}
}

// whole reports whether a folder was read so that what was not found is not there.
func whole(root *ckpt.Root) bool {
	if root.Empty {
		return root.Counts.EntriesLeftOut == 0
	}
	return root.Counts.SavesLeftOut == 0 && root.Counts.EntriesLeftOut == 0 && root.Counts.ProblemsLost == 0 &&
		!unreadable(root.Problems) && !slices.ContainsFunc(root.Saves, func(s ckpt.Save) bool {
		return !s.Called().OK && unreadable(s.Problems)
	})
}

func unreadable(problems []ckpt.Problem) bool {
	return slices.ContainsFunc(problems, func(p ckpt.Problem) bool { return p.Severity == ckpt.Unreadable })
}

// observations sees what the saves of a folder hold.
func (w *Watcher) observations(root *ckpt.Root, now time.Time) {
	for _, g := range w.group(root) {
		w.observe(root, &g, now)
	}
}

// observe sees what the saves of one epoch hold. That their place confirms them is said only where
// all of its domains do.
func (w *Watcher) observe(root *ckpt.Root, g *group, now time.Time) {
	of := model.EpochObservation{
		Time: now.UnixNano(), JobID: w.cfg.JobID, Generation: w.generation(g.world), Save: g.epoch, Confidence: 1,
		Observer: w.cfg.Observer, Life: w.cfg.Life, Revision: 2 * w.revision,
	}
	place := w.place(of)
	if !g.first.IsZero() {
		place.FirstWrite = max(0, g.first.UnixNano())
	}
	doubt := func(why string) {
		if place.State == model.DomainCommitted {
			place.State, place.Epoch, place.Witness = model.DomainTentative, model.Optional[int64]{}, cut.Text(why, cut.MaxName)
		}
	}
	if g.alone {
		doubt(g.weights.Sentence())
	}
	w.noteWeights(of, g)
	for _, d := range g.domains {
		o := of
		o.Domain = model.Domain{Kind: d.Kind, ID: cut.Text(d.ID+w.where(), cut.MaxName)}
		o.Epoch, o.State, o.Witness = d.Epoch, d.State, cut.Text(d.Witness, cut.MaxName)
		if !w.isDomain(&o) {
			doubt(fmt.Sprintf("%s %s is %s", d.Kind, d.ID, d.State))
			continue
		}
		said := w.see(o, g.shaky)
		if said == nil {
			doubt("there are more domains than are followed")
			continue
		}
		if d.Kind.IsPart() && said.State != model.DomainAbsent {
			place.Parts++
		}
		switch {
		case d.Kind == model.DomainTracker: // a pointer is no part of the save
		case said.State != model.DomainCommitted:
			doubt(fmt.Sprintf("%s %s is %s", d.Kind, d.ID, said.State))
		case said.Epoch != model.Some(g.epoch):
			doubt(fmt.Sprintf("%s %s holds %d", d.Kind, d.ID, said.Epoch.V))
		}
	}
	if g.unproven != "" {
		doubt(g.unproven)
	}
	if root.Counts.EntriesLeftOut > 0 {
		doubt("a folder has more entries than are read")
	}
	w.see(place, g.shaky)
}

// where is what is added to the names of domains.
func (w *Watcher) where() string {
	if w.cfg.Where == "" {
		return ""
	}
	return " " + w.cfg.Where
}

// place says that what is seen of a save is all. Its revision is one more than that of what
// goes before it.
func (w *Watcher) place(of model.EpochObservation) model.EpochObservation {
	of.Domain, of.Of = model.Domain{Kind: model.DomainPlace, ID: w.cfg.Where}, 1
	of.State, of.Epoch, of.Witness = model.DomainCommitted, model.Some(of.Save), "all that is looked at"
	of.Revision++
	if w.cfg.Where != "" {
		if of.Of = w.cfg.Places; of.Of == 0 {
			of.State, of.Epoch, of.Witness = model.DomainTentative, model.Optional[int64]{}, "nothing says in how many places its parts lie"
		}
	}
	return of
}

// isDomain reports whether an observation is of what is known to be a domain: it has confirmed an
// epoch, of whichever save. Until then it may stand for what is not known yet, as a reader names
// what must be there before it can read what is, and only makes the save doubtful.
func (w *Watcher) isDomain(o *model.EpochObservation) bool {
	if w.confirmed[o.Domain] {
		return true
	}
	if o.State != model.DomainCommitted || !o.Epoch.OK || len(w.confirmed) >= w.cfg.MaxDomains {
		return false
	}
	w.confirmed[o.Domain] = true
	return true
}

// generation tells sets of domains apart: saves of another number of ranks have others.
func (w *Watcher) generation(world model.Optional[int64]) string {
	if n := world.Or(w.cfg.World); n > 0 {
		w.last = fmt.Sprintf("%d ranks", n)
	}
	return w.last // of one that does not say it yet, as of the save before
}

// see takes one observation, and returns what is told of the domain; nil where there is no room.
// Where parts of the save could not be read at all (shaky), what is worse than what was told is
// believed when it is seen twice in a row: a network file system that does not answer for a moment
// is no loss.
func (w *Watcher) see(o model.EpochObservation, shaky bool) *model.EpochObservation {
	k := key{o.Save, o.Domain}
	s := w.domains[k]
	if s == nil {
		limit := w.cfg.MaxDomains
		if o.Domain.Kind == model.DomainPlace { // of a save that is followed in part, that must be said
			limit *= 2
		}
		s = &seen{said: o, look: w.revision}
		if len(w.domains) >= limit || w.bytes+s.size() > limit*bytesOfDomain {
			w.stats.Dropped++
			return nil
		}
		s.hold()
		w.domains[k] = s
		w.bytes += s.size()
		return &s.said
	}
	s.look, s.absent = w.revision, 0
	if o.State == model.DomainAbsent && !o.Epoch.OK && o.Generation == s.said.Generation {
		o.Epoch = s.held
	}
	switch {
	case same(&s.said, &o):
		s.worse, s.said.FirstWrite = nil, o.FirstWrite
	case shaky && s.said.State == model.DomainCommitted && o.State != model.DomainCommitted && (s.worse == nil || !same(s.worse, &o)):
		s.worse = &o
		w.stats.Held++
	default:
		w.withdraw(s, &o)
		w.bytes += len(o.Witness) - len(s.said.Witness)
		s.said, s.worse, s.told = o, nil, false
		s.hold()
	}
	return &s.said
}

// hold notes what is confirmed.
func (s *seen) hold() {
	if s.said.State == model.DomainCommitted {
		s.held = s.said.Epoch
	}
}

// withdraw has what was told of a domain taken back, where it was told of another set of domains.
func (w *Watcher) withdraw(s *seen, now *model.EpochObservation) {
	if s.said.Generation != now.Generation {
		w.takeBack(s, now, "it is of another number of ranks")
	}
}

// takeBack takes back what was told of a domain, with the revision of what is known now.
func (w *Watcher) takeBack(s *seen, now *model.EpochObservation, why string) {
	s.held = model.Optional[int64]{}
	was := s.said
	was.State, was.Epoch, was.Witness, was.Parts = model.DomainWithdrawn, model.Optional[int64]{}, why, 0
	was.Revision = now.Revision
	k := withdrawn{key{was.Save, was.Domain}, was.Generation}
	n := &seen{said: was, look: w.revision}
	_, ok := w.withdrawn[k]
	if !ok && (len(w.withdrawn) >= 2*w.cfg.MaxDomains || w.bytes+n.size() > 2*w.cfg.MaxDomains*bytesOfDomain) { // places, too
		w.stats.Dropped++
		return
	}
	if ok {
		w.bytes -= w.withdrawn[k].size()
	}
	w.bytes += n.size()
	w.withdrawn[k] = n
}

// bytesOfDomain is what a domain takes on average at most: its name, and what it was read from, are some
// hundred bytes.
const bytesOfDomain = 1 << 10

// size estimates what a domain takes.
func (s *seen) size() int {
	return int(unsafe.Sizeof(*s)+unsafe.Sizeof(key{})) + len(s.said.Domain.ID) + len(s.said.Witness)
}

// remove forgets a domain.
func (w *Watcher) remove(k key) {
	w.bytes -= w.domains[k].size()
	delete(w.domains, k)
}

func same(a, b *model.EpochObservation) bool {
	return a.State == b.State && a.Epoch == b.Epoch && a.Witness == b.Witness && a.Generation == b.Generation && a.Of == b.Of && a.Parts == b.Parts
}
