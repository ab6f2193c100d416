// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Version is what was read of one unit of a domain.
type Version struct {
	Domain  model.VersionDomain
	Unit    string // empty where the node has one
	Model   string
	Version string
	Witness string // what it was read from
}

// Mismatch is where versions of one node do not fit together.
type Mismatch struct {
	Kind string
	What string // in words
}

// Read is what a source gave.
type Read struct {
	Versions   []Version
	Mismatches []Mismatch
	// Problems are what could not be read, in words; LeftOut counts units beyond the limits.
	Problems []string
	LeftOut  int
}

const (
	// maxUnits bounds the units of one domain: a node has at most 16 GPUs, and some hundred
	// virtual functions of NICs.
	maxUnits = 256
	// maxText bounds a version, a model and a name: the longest seen is an image with its digest.
	maxText = 512
	// maxProblems bounds what is said of one look.
	maxProblems = 32
)

func (r *Read) add(v Version) {
	switch n := r.units(v.Domain); {
	case v.Version == "":
	case n >= maxUnits:
		r.LeftOut++
	default:
		r.Versions = append(r.Versions, v)
	}
}

func (r *Read) units(d model.VersionDomain) (n int) {
	for i := range r.Versions {
		if r.Versions[i].Domain == d {
			n++
		}
	}
	return n
}

func (r *Read) problem(err error) {
	if err != nil && len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, err.Error())
	}
}

// Join puts together what several sources gave. Where two tell of one unit, the first holds.
func Join(reads ...*Read) (all Read) {
	type unit struct {
		domain model.VersionDomain
		unit   string
	}
	seen := map[unit]bool{}
	for _, r := range reads {
		if r == nil {
			continue
		}
		for _, v := range r.Versions {
			if k := (unit{v.Domain, v.Unit}); !seen[k] {
				seen[k] = true
				all.Versions = append(all.Versions, v)
			}
		}
		all.Mismatches = append(all.Mismatches, r.Mismatches...)
		all.Problems = append(all.Problems, r.Problems...)
		all.LeftOut += r.LeftOut
	}
	all.Mismatches = append(all.Mismatches, apart(all.Versions)...)
	return all
}

// apart finds versions of one node that must be equal and are not. That of libcuda is none of them:
// a newer one on an older module is what NVIDIA's package for forward compatibility is for.
func apart(versions []Version) (out []Mismatch) {
	of := map[model.VersionDomain]Version{}
	for _, v := range versions {
		of[v.Domain] = v
	}
	kernel := of[model.VersionKernelDriver]
	for _, c := range []struct {
		domain model.VersionDomain
		kind   string
		name   string
	}{
		{model.VersionUserDriver, model.FactDriverMismatch, "the driver's libraries"},
		{model.VersionFabricManager, model.FactFabricManagerMismatch, "the fabric manager"},
	} {
		if v := of[c.domain]; v.Version != "" && kernel.Version != "" && v.Version != kernel.Version {
			out = append(out, Mismatch{c.kind, fmt.Sprintf("the kernel has NVIDIA's driver %s loaded (%s), and %s are of %s (%s)",
				kernel.Version, kernel.Witness, c.name, v.Version, v.Witness)})
		}
	}
	return out
}

// observations are what is told of versions: one for all units of a model that are alike, else one
// for each. They are in a fixed order.
func observations(versions []Version) (out []model.VersionObservation) {
	sorted := slices.Clone(versions)
	slices.SortStableFunc(sorted, func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Unit, b.Unit))
	})
	for len(sorted) > 0 {
		first := &sorted[0]
		n := 1
		for n < len(sorted) && sorted[n].Domain == first.Domain && sorted[n].Model == first.Model {
			n++
		}
		of := sorted[:n]
		sorted = sorted[n:]
		if !slices.ContainsFunc(of, func(v Version) bool { return v.Version != first.Version }) {
			out = append(out, model.VersionObservation{Domain: first.Domain, Model: first.Model, Version: first.Version, Units: int64(n), Witness: first.Witness})
			continue
		}
		for _, v := range of {
			out = append(out, model.VersionObservation{Domain: v.Domain, Unit: v.Unit, Model: v.Model, Version: v.Version, Units: 1, Witness: v.Witness})
		}
	}
	count := map[model.VersionDomain]int64{}
	for i := range out {
		count[out[i].Domain]++
	}
	for i := range out {
		out[i].Of = count[out[i].Domain]
	}
	return out
}

// text returns what a file or a program said as a version or a name: one line of visible
// characters, or why it is none. What stands for nothing is empty.
func text(s string) (string, error) {
	s = strings.TrimSpace(s)
	switch {
	case len(s) > maxText:
		return "", fmt.Errorf("got %d bytes; want at most %d", len(s), maxText)
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }):
		return "", fmt.Errorf("got %.40q; want one line of visible ASCII", s)
	}
	switch strings.ToUpper(strings.Trim(s, "[]")) {
	case "N/A", "NOT AVAILABLE", "UNKNOWN ERROR", "NOT SUPPORTED", "REQUESTED FUNCTIONALITY HAS BEEN DEPRECATED":
		return "", nil
	}
	return s, nil
}
