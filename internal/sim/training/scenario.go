// SPDX-License-Identifier: Apache-2.0

package training

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Scenarios are the cases by which methods are scored.
type Scenarios struct {
	Cases []Case
	// Hash is of the file's bytes, so that a result says by what it was scored.
	Hash string
	// Small is the share of a step below which nobody need be named for a fault.
	Small float64
}

// Groups of cases: what is asked of them.
const (
	GroupFault     = "fault"     // somebody is at fault, and is to be named
	GroupImbalance = "imbalance" // nobody is, and the imbalance may be told
	GroupHealthy   = "healthy"
	GroupCurve     = "curve"   // faults, as the recording gets worse
	GroupWitness   = "witness" // faults, by what was recorded
	GroupLimit     = "limit"   // what no method can tell from what is recorded
	GroupRate      = "rate"    // healthy and long, for a rate of false accusations
)

var groups = []string{GroupFault, GroupImbalance, GroupHealthy, GroupCurve, GroupWitness, GroupLimit, GroupRate}

// Case is one sort of job, at several scales and seeds.
type Case struct {
	Name     string
	Family   string
	Group    string
	Layout   string  // by name
	Severity float64 // of the first fault
	Witness  Witness
	// Curve is what gets worse: missing, lost, late or clock; X how much of it.
	Curve string
	X     float64
	// Seeds is how many jobs there are, by ranks; Scales are its keys, rising.
	Seeds  map[int]int
	Scales []int
	// Calibrate: confidence may be fitted on this case. All others only report.
	Calibrate bool
	// Novel: something is wrong with the job, and nothing that is wrong with it is of the
	// nature of what any case that calibrates has.
	Novel bool
	// Floor is the share of culprits that must be decided.
	Floor float64

	base    Spec
	layouts map[int]Layout
	steps   map[int]int
}

// Spec returns the case's job of so many ranks.
func (c *Case) Spec(ranks int) (Spec, error) {
	l, ok := c.layouts[ranks]
	if !ok {
		return Spec{}, fmt.Errorf("make job %s: got %d ranks; want one of %v", c.Name, ranks, c.Scales)
	}
	s := c.base
	s.Layout = l
	if s.Steps == 0 {
		s.Steps = c.steps[ranks]
	}
	s.Name = fmt.Sprintf("%s/%d", c.Name, ranks)
	s.Faults = slices.Clone(s.Faults)
	return s, nil
}

// Seed returns the n-th seed of the case at a scale. No two cases share one.
func (c *Case) Seed(ranks, n int) uint64 {
	return hash(textSeed(c.Name), uint64(ranks), uint64(n))
}

type scenarioFile struct {
	Version int                       `yaml:"version"`
	Small   float64                   `yaml:"small"`
	Noise   Noise                     `yaml:"noise"`
	Steps   map[int]int               `yaml:"steps"`
	Layouts map[string]map[int]Layout `yaml:"layouts"`
	Cases   []caseEntry               `yaml:"cases"`
}

type caseEntry struct {
	Family    string      `yaml:"family"`
	Group     string      `yaml:"group"`
	Layouts   []string    `yaml:"layouts"`
	Faults    []Fault     `yaml:"faults"`
	Variants  []variant   `yaml:"variants"`
	Seeds     map[int]int `yaml:"seeds"`
	Steps     int         `yaml:"steps"`
	Calibrate bool        `yaml:"calibrate"`
	Floor     float64     `yaml:"floor"`
	Curve     string      `yaml:"curve"`
	Witness   Witness     `yaml:"witness"`
	Sync      string      `yaml:"sync"`
	Work      bool        `yaml:"work"`
	Noise     *Noise      `yaml:"noise"`
	Clock     Clock       `yaml:"clock"`
}

// variant is a case of an entry. What it leaves out is the entry's.
type variant struct {
	Name     string   `yaml:"name"`
	Severity float64  `yaml:"severity"`
	Floor    *float64 `yaml:"floor"`
	X        float64  `yaml:"x"`
	Witness  Witness  `yaml:"witness"`
}

// Load reads a file of scenarios. The file says what its fields mean.
func Load(path string) (*Scenarios, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load scenarios: %w", err)
	}
	s, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("load scenarios %s: %w", path, err)
	}
	return s, nil
}

func parse(text []byte) (*Scenarios, error) {
	var f scenarioFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("got version %d; want 1", f.Version)
	}
	if !(f.Small >= 0 && f.Small < 1) {
		return nil, fmt.Errorf("got small %v; want 0 to below 1", f.Small)
	}
	sum := sha256.Sum256(text)
	out := &Scenarios{Hash: hex.EncodeToString(sum[:8]), Small: f.Small}
	names := map[string]bool{}
	for i := range f.Cases {
		e := &f.Cases[i]
		if len(e.Variants) == 0 {
			e.Variants = []variant{{}}
		}
		for _, name := range e.Layouts {
			for _, v := range e.Variants {
				c, err := f.expand(e, name, v)
				if err != nil {
					return nil, fmt.Errorf("case %d (%s): %w", i, e.Family, err)
				}
				if names[c.Name] {
					return nil, fmt.Errorf("case %d: got %q twice; want names of variants that differ", i, c.Name)
				}
				names[c.Name] = true
				out.Cases = append(out.Cases, c)
			}
		}
	}
	if len(out.Cases) == 0 {
		return nil, errors.New("got no cases; want some")
	}
	out.compareNatures()
	return out, nil
}

// compareNatures notes which cases are of natures that no case calibrates. Families are
// names: one of another name may be the same fault.
func (s *Scenarios) compareNatures() {
	fitted := map[nature]bool{}
	for i := range s.Cases {
		if c := &s.Cases[i]; c.Calibrate {
			for _, f := range c.base.Faults {
				fitted[natures[f.Family]] = true
			}
		}
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		c.Novel = len(c.base.Faults) > 0 &&
			!slices.ContainsFunc(c.base.Faults, func(f Fault) bool { return fitted[natures[f.Family]] })
	}
}

func (f *scenarioFile) expand(e *caseEntry, layout string, v variant) (Case, error) {
	c := Case{
		Family: e.Family, Group: e.Group, Layout: layout, Severity: v.Severity, Witness: e.Witness, Curve: e.Curve, X: v.X,
		Seeds: e.Seeds, Calibrate: e.Calibrate, Floor: e.Floor, layouts: map[int]Layout{}, steps: f.Steps,
	}
	if v.Floor != nil {
		c.Floor = *v.Floor
	}
	if v.Witness != "" {
		c.Witness = v.Witness
	}
	if c.Witness == "" {
		c.Witness = Kineto
	}
	if !slices.Contains(groups, c.Group) {
		return c, fmt.Errorf("got group %q; want one of %v", c.Group, groups)
	}
	c.base = Spec{Noise: f.Noise, Sync: e.Sync, Witness: c.Witness, Work: e.Work, Clock: e.Clock, Steps: e.Steps, Faults: slices.Clone(e.Faults)}
	if e.Noise != nil {
		c.base.Noise = *e.Noise
	}
	for i := range c.base.Faults {
		if s := &c.base.Faults[i].Severity; *s == 0 {
			*s = v.Severity
		}
	}
	if len(c.base.Faults) > 0 {
		c.Severity = c.base.Faults[0].Severity
	}
	if err := c.worsen(); err != nil {
		return c, err
	}
	c.name(v)
	return c, f.scales(e, &c)
}

// worsen makes the recording as bad as the curve's point says.
func (c *Case) worsen() error {
	switch c.Curve {
	case "":
	case "missing":
		c.base.Missing = c.X
	case "lost":
		c.base.Lost = c.X
	case "late":
		c.base.Late = c.X
	case "clock":
		c.base.Clock = Clock{Error: c.X, Drift: 20}
	default:
		return fmt.Errorf("got curve %q; want missing, lost, late or clock", c.Curve)
	}
	return nil
}

func (c *Case) name(v variant) {
	parts := []string{c.Family, c.Layout}
	if v.Name != "" {
		parts = append(parts, v.Name)
	} else if v.Severity != 0 {
		parts = append(parts, fmt.Sprint(v.Severity))
	}
	if c.Curve != "" {
		parts = append(parts, c.Curve, fmt.Sprint(c.X))
	}
	if c.Group == GroupLimit || c.Group == GroupCurve || c.Group == GroupRate {
		parts = append([]string{c.Group}, parts...)
	}
	if c.Group == GroupWitness {
		parts = append(parts, string(c.Witness))
	}
	c.Name = strings.Join(parts, "/")
}

// scales takes the layouts of the case's scales, and checks that each makes a job.
func (f *scenarioFile) scales(e *caseEntry, c *Case) error {
	for ranks := range e.Seeds {
		l, ok := f.Layouts[c.Layout][ranks]
		if !ok {
			return fmt.Errorf("got no layout %q of %d ranks; want it among the layouts", c.Layout, ranks)
		}
		c.layouts[ranks] = l
		c.Scales = append(c.Scales, ranks)
		s, err := c.Spec(ranks)
		if err != nil {
			return err
		}
		if s.Steps == 0 {
			return fmt.Errorf("got no steps for %d ranks; want them", ranks)
		}
		if s, err = s.filled(); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if got := s.Layout.Ranks(); got != ranks {
			return fmt.Errorf("layout %q: got %d ranks; want %d", c.Layout, got, ranks)
		}
	}
	if len(c.Scales) == 0 {
		return fmt.Errorf("%s: got no seeds; want some", c.Name)
	}
	slices.Sort(c.Scales)
	return nil
}
