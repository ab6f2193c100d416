// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// ofDimension is how a shard says its rank in one dimension of parallelism, and how many there are:
// "tp-0-of-2", "pp-rank-1-of-4".
var ofDimension = regexp.MustCompile(`([a-z]+)(?:-rank)?-(\d+)-of-(\d+)`)

// dimension is a rank of a shard in one dimension.
type dimension struct {
	name     string
	rank, of int64
	from, to int // of the rank's digits in the file's name
}

// dimensionsOf reads the dimensions of a name; nil where it has none, or numbers that are too large.
func dimensionsOf(name string) (ds []dimension) {
	for _, at := range ofDimension.FindAllStringSubmatchIndex(name, -1) {
		rank, ok1 := number(name[at[4]:at[5]])
		of, ok2 := number(name[at[6]:at[7]])
		if !ok1 || !ok2 || of < 1 || rank >= of {
			return nil
		}
		ds = append(ds, dimension{name[at[2]:at[3]], rank, of, at[4], at[5]})
	}
	return ds
}

// peers calls do with the name of the shard of each other rank that a name implies, in the dimensions that
// vary; false where there are more than limit.
func peers(name string, ds []dimension, varies func(dimension) bool, limit int64, do func(string)) bool {
	total := int64(1)
	for _, d := range ds {
		if varies(d) {
			if d.of > limit/total {
				return false
			}
			total *= d.of
		}
	}
	ranks := make([]int64, len(ds))
	for n := range total {
		for i := len(ds) - 1; i >= 0; i-- {
			ranks[i] = ds[i].rank
			if varies(ds[i]) {
				ranks[i], n = n%ds[i].of, n/ds[i].of
			}
		}
		var out strings.Builder
		from := 0
		for i, d := range ds {
			out.WriteString(name[from:d.from] + quantity(ranks[i]))
			from = d.to
		}
		do(out.String() + name[from:])
	}
	return true
}

// grid reads a folder of shards whose names say which ranks there are: one of each combination must be there.
// Shards of several grids are of several worlds.
func (b *builder) grid(f *folder, id string, kind model.DomainKind, read func(i int, name string)) (dims []dimension) {
	var first string
	for _, e := range f.entries {
		ds := dimensionsOf(e.Name())
		if ds == nil {
			continue
		}
		name := f.join(e.Name())
		i := b.domain(kind, id+e.Name(), name)
		read(i, name)
		switch {
		case first == "":
			first, dims = e.Name(), ds
		case !sameGrid(dims, ds):
			b.doubt(i, model.DomainTentative, Problem{CheckShards, Suspect, name, "got a shard of another world than " + first + "; want those of one: the folder was used before"})
		}
	}
	if first == "" {
		return nil
	}
	every := func(dimension) bool { return true }
	ok := peers(first, dims, every, int64(b.opt.Limits.Domains), func(name string) {
		if !f.has(name) {
			b.missing(b.domain(kind, id+name, ""), CheckShards, f.join(name), "got no such file; want one of each rank, as %s says", first)
		}
	})
	if !ok {
		b.torn(b.domain(kind, id+first, f.join(first)), CheckShards, f.join(first), "got more ranks by its name than %d; want at most that", b.opt.Limits.Domains)
	}
	return dims
}

func sameGrid(a, b []dimension) bool {
	return slices.EqualFunc(a, b, func(x, y dimension) bool { return x.name == y.name && x.of == y.of })
}
