// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// Sampler draws mutants without replacement. It takes the packages in turns, and within a
// package the kinds in turns. A quarter of all mutants, rounded up, are of kind Threshold
// while there are any.
type Sampler struct {
	packages           map[string]*Package
	thresholds, others turns

	drawn, drawnThresholds int
}

// NewSampler returns a sampler over all mutants of packages. The same seed and sources
// give the same sequence.
func NewSampler(seed uint64, packages []*Package) *Sampler {
	s := &Sampler{packages: map[string]*Package{}}
	random := rand.New(rand.NewPCG(seed, 0))
	packages = slices.SortedFunc(slices.Values(packages), func(a, b *Package) int {
		return cmp.Compare(a.Path, b.Path)
	})
	shuffle(random, packages)
	for _, p := range packages {
		s.packages[p.Path] = p
		byKind := map[Kind][]Mutant{}
		for _, m := range p.Find() {
			byKind[m.Kind] = append(byKind[m.Kind], m)
		}
		s.add(random, byKind)
	}
	return s
}

// add adds the mutants of one package.
func (s *Sampler) add(random *rand.Rand, byKind map[Kind][]Mutant) {
	others := &turns{}
	for _, kind := range Kinds {
		mutants := byKind[kind]
		shuffle(random, mutants)
		if kind == Threshold {
			s.thresholds.add(&pile{mutants})
		} else {
			others.add(&pile{mutants})
		}
	}
	shuffle(random, others.left)
	s.others.add(others)
}

func shuffle[T any](random *rand.Rand, of []T) {
	random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
}

// Sample returns the next n mutants that pass the type checker, and how many before or
// between them do not. It returns fewer than n where no more are left.
func (s *Sampler) Sample(n int) (sample []Mutant, rejected int) {
	for len(sample) < n {
		m, ok := s.draw()
		if !ok {
			break
		}
		if !s.packages[m.Package].Compiles(m) {
			rejected++
			continue
		}
		s.drawn++
		if m.Kind == Threshold {
			s.drawnThresholds++
		}
		sample = append(sample, m)
	}
	return sample, rejected
}

func (s *Sampler) draw() (Mutant, bool) {
	first, second := &s.others, &s.thresholds
	if 4*s.drawnThresholds <= s.drawn {
		first, second = second, first
	}
	if m, ok := first.draw(); ok {
		return m, true
	}
	return second.draw()
}

// drawer is something to draw mutants from, until none is left.
type drawer interface {
	draw() (Mutant, bool)
}

// pile draws its mutants from the first to the last.
type pile struct{ mutants []Mutant }

func (p *pile) draw() (Mutant, bool) {
	if len(p.mutants) == 0 {
		return Mutant{}, false
	}
	m := p.mutants[0]
	p.mutants = p.mutants[1:]
	return m, true
}

// turns draws from each drawer in turn.
type turns struct {
	left []drawer
	next int
}

func (t *turns) add(d drawer) { t.left = append(t.left, d) }

func (t *turns) draw() (Mutant, bool) {
	for len(t.left) > 0 {
		t.next %= len(t.left)
		if m, ok := t.left[t.next].draw(); ok {
			t.next++
			return m, true
		}
		t.left = slices.Delete(t.left, t.next, t.next+1)
	}
	return Mutant{}, false
}
