package epoch

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Judge says what is known of one save. Expected are the domains that anybody spoke of for
// this save or for an earlier one of the generation, and as many of each kind as anybody says
// that there are: a domain that was never heard of is not confirmed.
func (e *Engine) Judge(id, generationName string, epoch int64) Judgement {
	g := e.find(id, generationName)
	if g == nil || g.saves[epoch] == nil {
		return Judgement{Verdict: Unknown}
	}
	return e.judge(g, g.expected(), epoch, func(model.DomainKind) bool { return true })
}

// expected returns of each domain the first save that somebody spoke of it for.
func (g *generation) expected() []int64 {
	first := make([]int64, len(g.domains))
	for i := range first {
		first[i] = math.MaxInt64
	}
	for n, s := range g.saves {
		for i := range s.cells {
			if s.cells[i].value.state != silent {
				first[i] = min(first[i], n)
			}
		}
	}
	return first
}

func (e *Engine) judge(g *generation, first []int64, epoch int64, counts func(model.DomainKind) bool) Judgement {
	s := g.saves[epoch]
	t := tally{at: map[int64]int{}, kinds: map[model.DomainKind]int64{}}
	for _, i := range g.sorted() {
		d := g.domains[i]
		if first[i] > epoch || !counts(d.Kind) {
			continue
		}
		w := e.view(s, i)
		t.add(d, &w)
	}
	for _, kind := range sortedKeys(s.of) {
		if counts(kind) {
			t.unheard(kind, s.of[kind]-t.kinds[kind])
		}
	}
	return t.conclude(epoch, g.tainted)
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
	lost  int // domains that somebody saw go
}

func (t *tally) add(d model.Domain, w *view) {
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
	if w.lost {
		t.lost++
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
	case len(j.Held) > 1, len(j.Held) == 1 && j.Held[0].Epoch != epoch:
		j.Verdict = MixedEpoch
	case t.lost > 0 && t.lost == j.MissingCount:
		j.Verdict, j.Epoch = Revoked, model.Some(epoch)
	case len(j.Held) == 0, tainted:
		j.Verdict = Unknown
	case j.MissingCount > 0:
		j.Verdict = Converging
	default:
		j.Verdict, j.Epoch = Converged, model.Some(epoch)
	}
	return j
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
	first := g.expected()
	epochs := sortedKeys(g.saves)
	for _, n := range slices.Backward(epochs) {
		if e.judge(g, first, n, func(k model.DomainKind) bool { return k != model.DomainTracker }).Verdict == Converged {
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
