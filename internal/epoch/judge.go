// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Judge says what is known of one save. Those domains are expected that were told of it, as many of
// each kind as anybody says that there are, and as many as each observer of a place says that it
// tells. Of a kind of which nobody says how many there are, where no observer says either of how
// many domains it tells, all are expected that anybody ever spoke of in the generation, for whichever
// save. A domain of which nobody speaks is not confirmed; a pointer that has moved on is none.
func (e *Engine) Judge(id, generationName string, epoch int64) Judgement {
	g := e.find(id, generationName)
	if g == nil || g.saves[epoch] == nil {
		return Judgement{Verdict: Unknown}
	}
	return e.judge(g, epoch, func(model.DomainKind) bool { return true })
}

func (e *Engine) judge(g *generation, epoch int64, counts func(model.DomainKind) bool) Judgement {
	s := g.saves[epoch]
	if s.spoke == 0 { // all was taken back
		return Judgement{Verdict: Unknown}
	}
	t := tally{at: map[int64]int{}, kinds: map[model.DomainKind]int64{}}
	untold, listed := e.untold(g, s)
	for _, i := range g.sorted() {
		d := g.domains[i]
		if !counts(d.Kind) || (listed || s.of[d.Kind] > 0) && !s.tells(i) {
			continue
		}
		w := e.view(s, i)
		t.add(d, &w, epoch)
	}
	for _, kind := range sortedKeys(s.of) {
		if counts(kind) {
			t.unheard(kind, s.of[kind]-t.kinds[kind])
		}
	}
	t.unheard("", untold)
	return t.conclude(epoch, g.tainted)
}

// tells reports whether a domain was told of as one of the save, by whomever.
func (s *save) tells(at int32) bool {
	if int(at) >= len(s.cells) || s.cells[at].value.state == silent {
		return s.told.has(at)
	}
	return s.cells[at].value.speaks() || slices.ContainsFunc(s.more[at], func(c cell) bool { return c.value.speaks() })
}

// untold is how many domains observers of places tell of that were not heard; listed: there is
// one who says of how many it tells.
func (e *Engine) untold(g *generation, s *save) (n int64, listed bool) {
	var parts map[int32]int64
	s.each(func(_ int32, c *cell) {
		listed = listed || c.value.parts > 0
		if c.value.parts > 0 && !e.gone[c.observer] {
			if parts == nil {
				parts = map[int32]int64{}
			}
			parts[c.observer] = max(parts[c.observer], int64(c.value.parts))
		}
	})
	if parts == nil {
		return 0, listed
	}
	heard := make(map[int32]int64, len(parts))
	s.each(func(at int32, c *cell) {
		if c.value.speaks() && c.value.state != absent && g.domains[at].Kind.IsPart() {
			heard[c.observer]++
		}
	})
	for by, told := range parts {
		n += max(0, told-heard[by])
	}
	return n, listed
}

// view is what the observers that are still heard from say of a domain.
func (e *Engine) view(s *save, at int32) view {
	var w view
	if int(at) >= len(s.cells) {
		return w
	}
	e.look(&w, &s.cells[at])
	for i := range s.more[at] {
		e.look(&w, &s.more[at][i])
	}
	return w
}

func (e *Engine) look(w *view, c *cell) {
	if c.value.state != silent && !e.gone[c.observer] {
		w.add(c.value)
	}
}

// tally counts what domains hold.
type tally struct {
	j     Judgement
	at    map[int64]int
	kinds map[model.DomainKind]int64
	lost  int // domains that somebody saw lose the epoch
	// places are those whose looker is not sure of them: of what they hold the domains in them tell.
	places int
}

func (t *tally) add(d model.Domain, w *view, epoch int64) {
	if d.Kind == model.DomainTracker && w.said == 1<<absent && w.loses { // it points elsewhere by now
		return
	}
	t.j.Domains++
	t.kinds[d.Kind]++
	if w.holds && w.held[0] != w.held[1] {
		t.j.hold(t.at, w.held[0], d)
		t.j.hold(t.at, w.held[1], d)
		return
	}
	if w.confirms() {
		t.j.hold(t.at, w.held[0], d)
		return
	}
	switch {
	case w.loses && w.lost == [2]int64{epoch, epoch}:
		t.lost++
	case d.Kind == model.DomainPlace && w.said == 1<<tentative:
		t.places++
	}
	t.j.doubt(d, w.state().model())
}

// unheard counts domains that somebody says exist, and nobody has spoken of.
func (t *tally) unheard(kind model.DomainKind, n int64) {
	if n <= 0 {
		return
	}
	t.j.Domains += int(n)
	t.j.MissingCount += int(n) - 1
	t.j.doubt(model.Domain{Kind: kind, ID: "never heard of"}, "")
}

func (t *tally) conclude(epoch int64, tainted bool) Judgement {
	j := t.j
	slices.SortFunc(j.Held, func(a, b Held) int { return cmp.Compare(a.Epoch, b.Epoch) })
	switch {
	case j.agreement(epoch).Mixed():
		j.Verdict = MixedEpoch
	case tainted:
		j.Verdict = Unknown
	case t.lost > 0 && t.lost+t.places == j.MissingCount:
		j.Verdict, j.Epoch = Revoked, model.Some(epoch)
	case len(j.Held) == 0:
		j.Verdict = Unknown
	case j.MissingCount > 0:
		j.Verdict = Converging
	default:
		j.Verdict, j.Epoch = Converged, model.Some(epoch)
	}
	j.bound()
	return j
}

// bound leaves the epochs that most domains hold.
func (j *Judgement) bound() {
	if len(j.Held) <= MaxNamed {
		return
	}
	slices.SortStableFunc(j.Held, func(a, b Held) int { return cmp.Compare(b.Count, a.Count) })
	j.Held = slices.Clone(j.Held[:MaxNamed])
	slices.SortFunc(j.Held, func(a, b Held) int { return cmp.Compare(a.Epoch, b.Epoch) })
}

func compareDomains(a, b model.Domain) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}

// Frontier is the newest epoch that a job can recover: that every domain confirms. Trackers
// are pointers and hold nothing, so that they are not asked.
func (e *Engine) Frontier(id, generationName string) model.Optional[int64] {
	g := e.find(id, generationName)
	if g == nil {
		return model.Optional[int64]{}
	}
	epochs := sortedKeys(g.saves)
	for _, n := range slices.Backward(epochs) {
		if e.judge(g, n, func(k model.DomainKind) bool { return k != model.DomainTracker }).Verdict == Converged {
			return model.Some(n)
		}
	}
	return model.Optional[int64]{}
}

// Lag is how far a domain is ahead of what the whole job can recover.
type Lag struct {
	Domain model.Domain
	Newest int64 // the newest epoch that it confirms
	Epochs int64 // Newest minus the frontier
}

// Lags returns the domains that are ahead of the frontier, the furthest first, at most limit,
// and how many there are. Without a frontier all that confirm anything are ahead, by what
// they hold.
func (e *Engine) Lags(id, generationName string, limit int) (lags []Lag, count int) {
	g := e.find(id, generationName)
	if g == nil {
		return nil, 0
	}
	frontier := e.Frontier(id, generationName).Or(0)
	newest := make([]int64, len(g.domains))
	for n, s := range g.saves {
		for i := range s.cells {
			if n > newest[i] {
				if w := e.view(s, int32(i)); w.confirms() && w.held[0] == n {
					newest[i] = n
				}
			}
		}
	}
	for i, n := range newest {
		if n > frontier {
			lags = append(lags, Lag{g.domains[i], n, n - frontier})
		}
	}
	slices.SortFunc(lags, func(a, b Lag) int {
		return cmp.Or(cmp.Compare(b.Epochs, a.Epochs), compareDomains(a.Domain, b.Domain))
	})
	return lags[:min(limit, len(lags))], len(lags)
}
