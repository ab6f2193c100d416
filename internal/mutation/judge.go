// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Config says which tests judge mutants.
type Config struct {
	Dir         string // folder in the module of all packages
	Quick, Full Tier
	Packages    []*Package
	// Further has, by the import path of a package, patterns of further packages whose
	// tests run where the package's own leave a mutant alive.
	Further map[string][]string
	Jobs    int // how many compile and run tests at the same time
	State   *State
}

// Judge runs tests on mutants.
type Judge struct {
	quick, full Tier
	suites      map[string][]*suite // by the mutants' package
	state       *State
}

// NewJudge compiles the tests on unchanged sources and measures both tiers, where the state
// does not know how long they take. It returns an error where a test fails.
func NewJudge(ctx context.Context, c Config) (*Judge, error) {
	j := &Judge{quick: c.Quick, full: c.Full, suites: map[string][]*suite{}, state: c.State}
	all := map[string]*suite{}
	for _, p := range c.Packages {
		own := []listed{{ImportPath: p.Path, Dir: p.Dir}}
		further, err := list(ctx, c.Dir, nil, c.Further[p.Path])
		if err != nil {
			return nil, err
		}
		for _, l := range append(own, further...) {
			if all[l.ImportPath] == nil {
				all[l.ImportPath] = &suite{path: l.ImportPath, dir: l.Dir, limits: map[Tier]time.Duration{}}
			}
			j.suites[p.Path] = append(j.suites[p.Path], all[l.ImportPath])
		}
	}
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *suite) int { return strings.Compare(a.path, b.path) })
	return j, parallel(ctx, c.Jobs, sorted, func(ctx context.Context, _ int, s *suite) error {
		return j.measure(ctx, s)
	})
}

// measure identifies the suite and sets its limits.
func (j *Judge) measure(ctx context.Context, s *suite) error {
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "test")
	if err := s.build(ctx, "", binary); err != nil {
		return err
	}
	if err := s.identify(binary, j.full.Variable); err != nil {
		return err
	}
	tiers := []Tier{j.quick}
	if s.tiered {
		tiers = append(tiers, j.full)
	}
	for _, tier := range tiers {
		took, ok := j.state.baseline(s.path, s.tests, tier)
		if !ok {
			if took, err = j.time(ctx, s, binary, dir, tier); err != nil {
				return err
			}
		}
		s.limits[tier] = limit(took)
	}
	return nil
}

// unchangedLimit bounds the tests on unchanged sources.
const unchangedLimit = time.Hour

func (j *Judge) time(ctx context.Context, s *suite, binary, temp string, tier Tier) (time.Duration, error) {
	r, err := s.run(ctx, binary, temp, tier, unchangedLimit, "")
	if err != nil {
		return 0, err
	}
	if r.outcome != Alive {
		return 0, fmt.Errorf("run %s tests of %s: got %q without any change\n%s", tier.Name, s.path, r.outcome, r.output)
	}
	return r.took, j.state.add(entry{Baseline: &baseline{s.path, s.tests, tier.Name, r.took.Seconds()}})
}

// limit returns how long tests may take on a mutant that take so long on unchanged sources.
// The 20 s are for short tests on a busy machine.
func limit(unchanged time.Duration) time.Duration { return 5*unchanged + 20*time.Second }

// Judge returns the verdict on m, from the state where it has one. The quick tier runs
// first: the tests of the mutant's package, then the further ones, until one fails. Where
// none does, the full tier runs likewise, of those tests that have one. An error means that
// ctx is over or that tests could not be compiled or started.
func (j *Judge) Judge(ctx context.Context, m Mutant) (Record, error) {
	tests := j.tests(m)
	if r, ok := j.state.record(m, tests); ok {
		return r, nil
	}
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return Record{}, err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(m, dir)
	if err != nil {
		return Record{}, err
	}
	suites := j.suites[m.Package]
	t := &trial{overlay: overlay, dir: dir, binaries: map[*suite]string{}, record: Record{Mutant: m, Tests: tests, Rules: rules}}
	start := time.Now()
	t.record.Quick, err = t.tier(ctx, j.quick, suites)
	if err == nil && t.record.Quick == Alive {
		t.record.Full, err = t.tier(ctx, j.full, tiered(suites))
	}
	if err != nil {
		return Record{}, err
	}
	t.record.Seconds = time.Since(start).Seconds()
	return t.record, j.state.add(entry{Mutant: &t.record})
}

// tests identifies all tests that judge m.
func (j *Judge) tests(m Mutant) string {
	var all []string
	for _, s := range j.suites[m.Package] {
		all = append(all, s.tests)
	}
	return strings.Join(all, "+")
}

func tiered(suites []*suite) []*suite {
	return slices.DeleteFunc(slices.Clone(suites), func(s *suite) bool { return !s.tiered })
}

// trial is one mutant before its judge.
type trial struct {
	overlay, dir string
	binaries     map[*suite]string // compiled so far
	record       Record
}

// tier runs the suites until one kills the mutant, and sets the record's By and Test then.
func (t *trial) tier(ctx context.Context, tier Tier, suites []*suite) (Outcome, error) {
	for _, s := range suites {
		binary, err := t.binary(ctx, s)
		var rejected *rejectedError
		if errors.As(err, &rejected) {
			return NotCompiled, nil
		}
		if err != nil {
			return "", err
		}
		r, err := t.confirmed(ctx, s, binary, tier)
		if err != nil {
			return "", err
		}
		if r.outcome != Alive {
			t.record.By, t.record.Test = s.path, r.test
			return r.outcome, nil
		}
	}
	return Alive, nil
}

// binary returns the path of the compiled suite, and compiles it on the first call.
func (t *trial) binary(ctx context.Context, s *suite) (string, error) {
	if binary, ok := t.binaries[s]; ok {
		return binary, nil
	}
	binary := filepath.Join(t.dir, fmt.Sprintf("test%d", len(t.binaries)))
	if err := s.build(ctx, t.overlay, binary); err != nil {
		return "", err
	}
	t.binaries[s] = binary
	return binary, nil
}
