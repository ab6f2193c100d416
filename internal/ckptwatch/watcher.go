package ckptwatch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/ckpt"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Config says what a folder is of, and how it is told of.
type Config struct {
	JobID string
	// Observer names this life of who looks.
	Observer string
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
	// MaxDomains bounds the domains of all saves that are followed.
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
	// confirmed are the domains that have confirmed an epoch, whichever.
	confirmed map[model.Domain]bool
	last      string // generation
	revision  int64
	beat      time.Time // when all was told last
	stats     Stats
}

type key struct {
	save   int64
	domain model.Domain
}

// seen is what was told of a domain, and what may have to be told.
type seen struct {
	said model.EpochObservation
	// worse: what it was last, if that is less than it was told to be, and was seen once.
	worse  *model.EpochObservation
	told   bool // said was taken by who is told
	look   int64
	absent int // heartbeats since it was there
}

func (s *seen) place() bool { return s.said.Domain.Kind == model.DomainPlace }

// goneFor is for how many heartbeats it is told of a domain that is there no more.
const goneFor = 3

// New returns a watcher that has seen nothing.
func New(cfg Config) *Watcher {
	return &Watcher{cfg: cfg, domains: map[key]*seen{}, confirmed: map[model.Domain]bool{}}
}

// Stats returns the counters.
func (w *Watcher) Stats() Stats { return w.stats }

// Len is how many domains are followed.
func (w *Watcher) Len() int { return len(w.domains) }

// Look takes what a folder holds, and returns what is to be told of it, in a fixed order.
func (w *Watcher) Look(root *ckpt.Root, now time.Time) []model.EpochObservation {
	w.revision++
	w.observations(root, now)
	if whole(root) {
		w.vanish(now)
	} else {
		w.stats.Partial++
	}
	return w.due(now)
}

// Refused takes back that what was returned last was told: it is told with the next look. Who is
// told in parts is told no part behind one that was refused.
func (w *Watcher) Refused(obs []model.EpochObservation) {
	for i := range obs {
		if s := w.domains[key{obs[i].Save, obs[i].Domain}]; s != nil {
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
		!slices.ContainsFunc(root.Problems, func(p ckpt.Problem) bool { return p.Severity == ckpt.Unreadable })
}

// observations sees what the saves of a folder hold.
func (w *Watcher) observations(root *ckpt.Root, now time.Time) {
	times := map[int64]int{} // how many saves have this epoch
	for i := range root.Saves {
		s := &root.Saves[i]
		e := s.Called()
		if !e.OK {
			w.stats.Unnamed++
			continue
		}
		where := ""
		if times[e.V]++; times[e.V] > 1 { // which of them a resume takes is not known: both must hold
			where = " in " + s.Path
		}
		if w.cfg.Where != "" {
			where += " " + w.cfg.Where
		}
		of := model.EpochObservation{
			Time: now.UnixNano(), JobID: w.cfg.JobID, Generation: w.generation(s), Save: e.V, Confidence: 1,
			Observer: w.cfg.Observer, Revision: 2 * w.revision,
		}
		shaky := slices.ContainsFunc(s.Problems, func(p ckpt.Problem) bool { return p.Severity == ckpt.Unreadable })
		place := w.place(of, where)
		grew := false
		doubt := func(why string) {
			if place.State == model.DomainCommitted {
				place.State, place.Epoch, place.Witness = model.DomainTentative, model.Optional[int64]{}, why
			}
		}
		for k := range s.Domains {
			d := &s.Domains[k]
			o := of
			o.Domain, o.Epoch, o.State, o.Witness = model.Domain{Kind: d.Kind, ID: d.ID + where}, d.Epoch, d.State, d.Witness
			if !w.isDomain(&o) {
				doubt(fmt.Sprintf("%s %s is %s", d.Kind, d.ID, d.State))
				continue
			}
			switch w.see(o, shaky) {
			case added:
				grew = true
			case noRoom:
				doubt("there are more domains than are followed")
			case known:
			}
		}
		if why := unproven(s); why != "" {
			doubt(why)
		}
		if root.Counts.EntriesLeftOut > 0 {
			doubt("a folder has more entries than are read")
		}
		w.seePlace(place, shaky, grew)
	}
}

// place says that what is seen of a save is all. Its revision is one more than that of what
// goes before it.
func (w *Watcher) place(of model.EpochObservation, where string) model.EpochObservation {
	of.Domain, of.Of = model.Domain{Kind: model.DomainPlace, ID: strings.TrimPrefix(where, " ")}, 1
	of.State, of.Epoch, of.Witness = model.DomainCommitted, model.Some(of.Save), "all that is looked at"
	of.Revision++
	if w.cfg.Where != "" {
		if of.Of = w.cfg.Places; of.Of == 0 {
			of.State, of.Epoch, of.Witness = model.DomainTentative, model.Optional[int64]{}, "nothing says in how many places its parts lie"
		}
	}
	return of
}

// seePlace takes what is said of all of a save: again, where it grew.
func (w *Watcher) seePlace(o model.EpochObservation, shaky, grew bool) {
	if w.see(o, shaky) != known || !grew {
		return
	}
	if s := w.domains[key{o.Save, o.Domain}]; s.worse == nil {
		s.said, s.told = o, false
	}
}

// taken is what came of an observation.
type taken uint8

const (
	known taken = iota
	added
	noRoom
)

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
func (w *Watcher) generation(s *ckpt.Save) string {
	if n := s.World.Or(w.cfg.World); n > 0 {
		w.last = fmt.Sprintf("%d ranks", n)
	}
	return w.last // of one that does not say it yet, as of the save before
}

// unproven says why a save is not confirmed though all of its domains are.
func unproven(s *ckpt.Save) string {
	switch {
	case s.Unproven != "":
		return s.Unproven
	case s.WorldUnknown:
		return "nothing says how many ranks wrote it"
	}
	return ""
}

// see takes one observation. Where parts of the save could not be read at all (shaky), what is
// worse than what was told is believed when it is seen twice in a row: a network file system that
// does not answer for a moment is no loss.
func (w *Watcher) see(o model.EpochObservation, shaky bool) taken {
	k := key{o.Save, o.Domain}
	s := w.domains[k]
	if s == nil {
		limit := w.cfg.MaxDomains
		if o.Domain.Kind == model.DomainPlace { // of a save that is followed in part, that must be said
			limit *= 2
		}
		if len(w.domains) >= limit {
			w.stats.Dropped++
			return noRoom
		}
		w.domains[k] = &seen{said: o, look: w.revision}
		return added
	}
	if s.look == w.revision {
		return known // one save has the domain twice
	}
	s.look, s.absent = w.revision, 0
	switch {
	case same(&s.said, &o):
		s.worse = nil
	case shaky && s.said.State == model.DomainCommitted && o.State != model.DomainCommitted && (s.worse == nil || !same(s.worse, &o)):
		s.worse = &o
		w.stats.Held++
	default:
		s.said, s.worse, s.told = o, nil, false
	}
	return known
}

func same(a, b *model.EpochObservation) bool {
	return a.State == b.State && a.Epoch == b.Epoch && a.Witness == b.Witness && a.Generation == b.Generation && a.Of == b.Of
}

// vanish finds what is there no more. Of what had confirmed an epoch that is a tombstone.
func (w *Watcher) vanish(now time.Time) {
	for _, s := range w.domains {
		if s.look == w.revision || s.said.State == model.DomainAbsent {
			continue
		}
		o := s.said
		o.Time, o.Revision, o.State, o.Witness = now.UnixNano(), 2*w.revision, model.DomainAbsent, ""
		if s.place() {
			o.Revision++
		}
		if s.said.State != model.DomainCommitted {
			o.Epoch = model.Optional[int64]{}
		}
		s.said, s.worse, s.told = o, nil, false
	}
}

// due are the observations that were not told yet, and on a heartbeat all.
func (w *Watcher) due(now time.Time) (out []model.EpochObservation) {
	all := now.Sub(w.beat) >= w.cfg.Heartbeat
	if all {
		w.beat = now
	}
	for k, s := range w.domains {
		if all && s.look != w.revision && s.said.State == model.DomainAbsent {
			if s.absent++; s.absent > goneFor {
				delete(w.domains, k)
				continue
			}
		}
		if !s.told || all {
			s.told = true
			o := s.said
			o.Time = now.UnixNano()
			out = append(out, o)
			if s.place() && o.State == model.DomainCommitted {
				out = append(out, announced(o))
			}
		}
	}
	slices.SortFunc(out, func(a, b model.EpochObservation) int {
		return cmp.Or(cmp.Compare(a.Save, b.Save), cmp.Compare(turn(&a), turn(&b)), cmp.Compare(a.Domain.Kind, b.Domain.Kind), cmp.Compare(a.Domain.ID, b.Domain.ID))
	})
	return out
}

// announced goes before all that is told of a save: that it will be said of the place that this was
// all. Who hears only a part does not take it for the whole; to who has heard all it is old.
func announced(o model.EpochObservation) model.EpochObservation {
	o.State, o.Epoch, o.Witness = model.DomainReflecting, model.Optional[int64]{}, ""
	o.Revision--
	return o
}

// turn is when an observation is told: that the place confirms it last, that it does not first.
func turn(o *model.EpochObservation) int {
	switch {
	case o.Domain.Kind != model.DomainPlace:
		return 1
	case o.State == model.DomainCommitted:
		return 2
	}
	return 0
}
