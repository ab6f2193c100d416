// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/torchsave"
)

// Parts that ranks write differ. A file that was copied over that of another rank fits in form and step: the name that
// torch.save writes into a file shows it, or equal content of two files.

var numberIn = regexp.MustCompile(`\d+`)

// savedAs doubts a file that was saved under the name of another part: the same name with other numbers. A file that
// was renamed otherwise, was saved through a stream, or is the whole save, decides nothing.
func (t *torch) savedAs() {
	file := path.Base(t.name)
	ext := path.Ext(file)
	want, got := strings.TrimSuffix(file, ext), t.Name()
	if t.name == t.b.save.Path || !otherNumbers(partsUncounted(got), partsUncounted(want), model.Optional[int64]{}) {
		return
	}
	t.b.doubt(t.domain, model.DomainTentative, Problem{
		CheckWitness, Suspect, t.name,
		"got the file that was saved as " + quote(got+ext) + "; want that of " + quote(file) + ": another part was copied over it, or it was renamed: then give it that name again",
	})
}

// partCount is how many parts a name says that there are. Who writes one after the other need not know it yet.
var partCount = regexp.MustCompile(`-of-\d+`)

func partsUncounted(name string) string { return partCount.ReplaceAllString(name, "") }

// otherNumbers reports whether two names are the same but for the values of their numbers; with a number given, but for
// what stands in its place.
func otherNumbers(got, want string, of model.Optional[int64]) bool {
	if numberIn.ReplaceAllString(got, "#") != numberIn.ReplaceAllString(want, "#") {
		return false
	}
	bare := func(digits string) string { return strings.TrimLeft(digits, "0") }
	are := numberIn.FindAllString(got, -1)
	for i, n := range numberIn.FindAllString(want, -1) {
		if bare(n) != bare(are[i]) && (!of.OK || bare(n) == bare(quantity(of.V))) {
			return true
		}
	}
	return false
}

// twin is a file of a rank, of which no other rank has the same content.
type twin struct {
	domain int
	name   string
	digest [32]byte
}

// distinct notes a file of a group of ranks' files whose contents must differ.
func distinct(b *builder, group string, file *torch) {
	if file == nil {
		return
	}
	if digest, ok := file.Content(); ok {
		if b.twins == nil {
			b.twins = map[string][]twin{}
		}
		b.twins[group] = append(b.twins[group], twin{file.domain, file.name, digest})
	}
}

// judgeTwins doubts files of a group that hold the same. Which of them is the copy, nothing says.
func judgeTwins(b *builder) {
	for _, name := range slices.Sorted(maps.Keys(b.twins)) {
		group := b.twins[name]
		slices.SortStableFunc(group, func(a, b twin) int {
			return cmp.Or(strings.Compare(string(a.digest[:]), string(b.digest[:])), natural(a.name, b.name))
		})
		for i := 1; i < len(group); i++ {
			if one, other := group[i-1], group[i]; one.digest == other.digest && b.ctx.Err() == nil && variesIn(b, other.name) {
				sameContent(b, one, other)
				sameContent(b, other, one)
			}
		}
	}
}

// variesIn reports whether a file of torch.save has a tensor with several values.
func variesIn(b *builder, name string) bool {
	f, err := b.open(name)
	if err != nil {
		return false
	}
	defer f.close()
	z, err := torchsave.Open(f, f.size)
	return err == nil && z.Varies()
}

func sameContent(b *builder, of, other twin) {
	b.doubt(of.domain, model.DomainTentative, Problem{
		CheckWitness, Suspect, of.name,
		"got the same content as " + other.name + "; want another: each rank has a part of its own, and one was copied over the other",
	})
}

// sameSaver doubts files of Megatron's ranks that one rank saved, by its arguments: each saves one. A tool that converts
// a model writes them all, and no optimizer.
func sameSaver(b *builder) {
	by := map[int64]megatronRankState{}
	for _, r := range b.ranks {
		if !r.global.OK || !r.optimizer {
			continue
		}
		first, twice := by[r.global.V]
		if !twice {
			by[r.global.V] = r
			continue
		}
		for _, pair := range [][2]megatronRankState{{first, r}, {r, first}} {
			b.doubt(b.domain(model.DomainModel, pair[0].name, pair[0].file), model.DomainTentative, Problem{
				CheckWitness, Suspect, pair[0].file,
				"got args.rank " + quantity(r.global.V) + ", as in " + pair[1].file + "; want another: a rank saves one file, and one was copied over the other",
			})
		}
	}
}
