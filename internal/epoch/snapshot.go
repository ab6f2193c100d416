// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// snapshotVersion is that of the form in which an engine survives a restart.
const snapshotVersion = 1

type snapshot struct {
	Version   int                  `json:"version"`
	Observers []string             `json:"observers,omitempty"`
	Gone      []int32              `json:"gone,omitempty"` // observers that were forgotten
	Jobs      []generationSnapshot `json:"generations,omitempty"`
}

type generationSnapshot struct {
	Job        string         `json:"job"`
	Generation string         `json:"generation"`
	Tainted    bool           `json:"tainted,omitempty"`
	Domains    [][2]string    `json:"domains"` // kind, id
	Saves      []saveSnapshot `json:"saves"`
}

type saveSnapshot struct {
	Save int64                      `json:"save"`
	Of   map[model.DomainKind]int64 `json:"of,omitempty"`
	Told []int32                    `json:"told,omitempty"` // domains of which none that are held speak
	// Registers are of domain, observer, revision, state, whether it has an epoch, epoch, parts.
	Registers [][7]int64 `json:"registers"`
}

// Snapshot returns all that the engine holds, as JSON: what was said, by whom, who was forgotten,
// which domains are expected, and where something was left out.
func (e *Engine) Snapshot() ([]byte, error) {
	s := snapshot{Version: snapshotVersion}
	number := e.number(&s)
	for _, id := range e.Jobs() {
		for _, name := range e.Generations(id) {
			s.Jobs = append(s.Jobs, e.jobs[id].generations[name].snapshot(id, name, number))
		}
	}
	return json.Marshal(s)
}

// number numbers, by name, the observers that anything is held of: in which order they came, and
// who else there was, is nothing that an engine that is restored would know.
func (e *Engine) number(s *snapshot) map[int32]int32 {
	held := map[string]int32{}
	for _, j := range e.jobs {
		for _, g := range j.generations {
			for _, of := range g.saves {
				of.each(func(_ int32, c *cell) { held[e.names[c.observer]] = c.observer })
			}
		}
	}
	number := make(map[int32]int32, len(held))
	for _, name := range sortedKeys(held) {
		at := int32(len(s.Observers))
		number[held[name]] = at
		s.Observers = append(s.Observers, name)
		if e.gone[held[name]] {
			s.Gone = append(s.Gone, at)
		}
	}
	return number
}

func (g *generation) snapshot(id, name string, number map[int32]int32) generationSnapshot {
	out := generationSnapshot{Job: id, Generation: name, Tainted: g.tainted}
	for _, d := range g.domains {
		out.Domains = append(out.Domains, [2]string{string(d.Kind), d.ID})
	}
	for _, n := range sortedKeys(g.saves) {
		s := g.saves[n]
		of := saveSnapshot{Save: n, Of: s.of}
		put := func(at int, c cell) {
			known := int64(0)
			if c.value.known {
				known = 1
			}
			of.Registers = append(of.Registers, [7]int64{int64(at), int64(number[c.observer]), c.revision, int64(c.value.state), known, c.value.epoch, int64(c.value.parts)})
		}
		for at, c := range s.cells {
			if s.told.has(int32(at)) {
				of.Told = append(of.Told, int32(at))
			}
			if c.value.state == silent {
				continue
			}
			put(at, c)
			for _, other := range s.more[int32(at)] {
				put(at, other)
			}
		}
		out.Saves = append(out.Saves, of)
	}
	return out
}

// Restore joins what a snapshot holds. Of one that is not right nothing is taken.
func (e *Engine) Restore(data []byte) error {
	var s snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("restore epochs: %w", err)
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("restore epochs: %w", err)
	}
	for i := range s.Jobs {
		e.restore(&s, &s.Jobs[i])
	}
	for _, i := range s.Gone {
		e.Forget(s.Observers[i])
	}
	return nil
}

func (s *snapshot) check() error {
	if s.Version != snapshotVersion {
		return fmt.Errorf("check version: got %d; want %d", s.Version, snapshotVersion)
	}
	for _, i := range s.Gone {
		if i < 0 || int(i) >= len(s.Observers) {
			return fmt.Errorf("check gone: got observer %d; want one of %d", i, len(s.Observers))
		}
	}
	for i := range s.Jobs {
		g := &s.Jobs[i]
		for _, of := range g.Saves {
			for kind := range of.Of {
				if kind == "" {
					return fmt.Errorf("check generation %q of job %q: save %d: got a count of no kind", g.Generation, g.Job, of.Save)
				}
			}
		}
		for k := range g.Saves {
			for _, at := range g.Saves[k].Told {
				if at < 0 || int(at) >= len(g.Domains) {
					return fmt.Errorf("check generation %q of job %q: save %d: got domain %d; want one of %d", g.Generation, g.Job, g.Saves[k].Save, at, len(g.Domains))
				}
			}
			for _, r := range g.Saves[k].Registers {
				if err := s.checkRegister(g, r); err != nil {
					return fmt.Errorf("check generation %q of job %q: save %d: %w", g.Generation, g.Job, g.Saves[k].Save, err)
				}
			}
		}
		for _, d := range g.Domains {
			if d[0] == "" {
				return fmt.Errorf("check generation %q of job %q: got a domain without a kind", g.Generation, g.Job)
			}
		}
	}
	return nil
}

func (s *snapshot) checkRegister(g *generationSnapshot, r [7]int64) error {
	switch {
	case r[0] < 0 || r[0] >= int64(len(g.Domains)):
		return fmt.Errorf("got domain %d; want one of %d", r[0], len(g.Domains))
	case r[1] < 0 || r[1] >= int64(len(s.Observers)):
		return fmt.Errorf("got observer %d; want one of %d", r[1], len(s.Observers))
	case r[3] <= int64(silent) || r[3] > int64(withdrawn):
		return fmt.Errorf("got state %d; want %d to %d", r[3], absent, withdrawn)
	case r[4] != 0 && r[4] != 1, r[4] == 0 && r[5] != 0:
		return fmt.Errorf("got epoch %d with mark %d; want mark 1, or 0 without an epoch", r[5], r[4])
	case r[4] == 1 && r[3] != int64(committed) && r[3] != int64(absent):
		return errors.New("got an epoch of a state that has none")
	case r[6] < 0 || r[6] > math.MaxInt32:
		return fmt.Errorf("got %d parts; want 0 to %d", r[6], math.MaxInt32)
	case r[6] > 0 && (g.Domains[r[0]][0] != string(model.DomainPlace) || !value{state: state(r[3])}.speaks()):
		return errors.New("got parts of what is no place")
	}
	return nil
}

func (e *Engine) restore(s *snapshot, from *generationSnapshot) {
	defer e.shrink()
	g := e.generation(from.Job, from.Generation)
	g.tainted = g.tainted || from.Tainted
	at, kinds := make([]int32, len(from.Domains)), map[model.DomainKind]model.DomainKind{}
	for i, d := range from.Domains {
		k, ok := g.domain(model.Domain{Kind: model.DomainKind(d[0]), ID: d[1]}, e.cfg.Domains)
		if at[i] = k; !ok {
			at[i] = -1
			e.overflow(g)
			continue
		}
		kinds[g.domains[k].Kind] = g.domains[k].Kind
	}
	for i := range from.Saves {
		of := &from.Saves[i]
		to := e.save(g, of.Save)
		if to == nil {
			continue
		}
		for kind, n := range of.Of {
			if n > int64(e.cfg.Domains) {
				e.overflow(g)
			} else if n > to.of[kind] {
				to.of[cmp.Or(kinds[kind], kind)] = n // the generation's text, where it has a domain of the kind
			}
		}
		for _, i := range of.Told {
			if at[i] >= 0 {
				to.expect(at[i])
			}
		}
		for _, r := range of.Registers {
			by, ok := e.observer(s.Observers[r[1]], g.of)
			if !ok || at[r[0]] < 0 {
				e.overflow(g)
				continue
			}
			if g.saves[of.Save] == to { // else it had to leave meanwhile
				e.join(g, of.Save, at[r[0]], cell{register{r[2], value{r[5], int32(r[6]), state(r[3]), r[4] == 1}}, by})
			}
		}
		g.measure(of.Save)
	}
}
