// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// builder gathers what a reader finds of one save.
type builder struct {
	*scan
	save Save
	of   string               // the path of the save that this is a part of; "" where it is none
	at   map[model.Domain]int // of a domain in save.Domains
	lost bool                 // there are more domains than Limits.Domains
	// last is the file that was written after all others that are now read, nil where no file
	// is known to be: what is newer was overwritten since, by another attempt at this epoch.
	last *marker
	// dated: the save has a name of its own, so that no other epoch was saved under it. What its times
	// say is then judged beside those of the whole folder.
	dated bool
	// initial: the save is for a job to begin from, which needs no more than a model.
	initial bool
	// hasCommon: the DCP metadata names what Megatron keeps for all ranks.
	hasCommon bool
	ranks     []megatronRankState
	twins     map[string][]twin   // files of ranks whose contents must differ
	shared    map[string][]shared // what all ranks count alike, by its name
	weighed   bool                // a resume loads the files of weights that are read
	models    *severalModels      // of accelerate; nil of others
	items     dcpState            // what the items of DCP are of
	names     *dcpNames           // of the items that are read
	titan     bool                // torchtitan may have written it
	blobs     bool                // an item of DCP is a file of torch.save
	raw       []rawItem           // those that are none

	counted    []shardCount // what optimizers count in files of DCP
	countReads int          // numbers that were read for it
}

func (s *scan) newSave(f Format, path string, epoch model.Optional[int64]) *builder {
	return &builder{
		scan: s, save: Save{Format: f, Path: path, Epoch: epoch}, at: map[model.Domain]int{},
		dated: epoch.OK || f == FormatHFTrainer,
	}
}

// newPart is newSave for a folder of this save.
func (b *builder) newPart(f Format, path string, epoch model.Optional[int64]) *builder {
	inner := b.newSave(f, path, epoch)
	inner.of = cmp.Or(b.of, b.save.Path)
	return inner
}

// domain returns where a domain stands; one that is new is committed until something is
// found against it.
func (b *builder) domain(kind model.DomainKind, id, file string) int {
	key := model.Domain{Kind: kind, ID: id}
	if i, ok := b.at[key]; ok {
		return i
	}
	if len(b.save.Domains) >= b.opt.Limits.Domains {
		b.lost = true
		return len(b.save.Domains) - 1
	}
	b.at[key] = len(b.save.Domains)
	b.save.Domains = append(b.save.Domains, Domain{Domain: key, State: model.DomainCommitted, File: file})
	return len(b.save.Domains) - 1
}

// doubt notes what is wrong with a domain. What is only torn may not hide what is missing.
func (b *builder) doubt(i int, state model.DomainState, p Problem) {
	if d := &b.save.Domains[i]; d.State != model.DomainAbsent {
		d.State = state
	}
	b.problem(&b.save, p)
}

// torn says that a domain is there, and not whole.
func (b *builder) torn(i int, check Check, file, format string, args ...any) {
	b.doubt(i, model.DomainTentative, Problem{check, Partial, file, fmt.Sprintf(format, args...)})
}

// missing says that a domain which must be there is not.
func (b *builder) missing(i int, check Check, file, format string, args ...any) {
	b.doubt(i, model.DomainAbsent, Problem{check, Partial, file, fmt.Sprintf(format, args...)})
}

// hold notes the epoch that a domain's content says. A domain whose contents say two is
// split: one of them is as much of the save as the other.
func (b *builder) hold(i int, epoch int64, witness, file string) {
	d := &b.save.Domains[i]
	if d.Own && d.Epoch.V != epoch {
		j := b.domain(d.Kind, d.ID+" in "+path.Base(file), file)
		if j == i {
			b.lost = true
			return
		}
		i = j
		d = &b.save.Domains[i]
	}
	d.Epoch, d.Own, d.Witness = model.Some(epoch), true, witness+" in "+file
}

// done finishes the save: domains of which no content says an epoch are of the save's.
func (b *builder) done() {
	name := path.Base(b.save.Path)
	if name == "." && b.name != "" {
		name = b.name
	}
	noteWeightsOfDCP(b, noOptimizerItem)
	by := "name of " + name
	epoch := b.save.Epoch
	for i := range b.save.Domains {
		d := &b.save.Domains[i]
		if !d.Epoch.OK && d.State == model.DomainCommitted && epoch.OK {
			d.Epoch, d.Witness = epoch, by
		}
	}
	b.noteMixed()
	if b.lost {
		b.save.Domains = append(b.save.Domains, Domain{Domain: model.Domain{Kind: model.DomainModel, ID: "beyond the limit"}, State: model.DomainTentative})
		b.problem(&b.save, Problem{CheckInput, Unreadable, b.save.Path, fmt.Sprintf("got more than %d domains; want at most that", b.opt.Limits.Domains)})
	}
	slices.SortStableFunc(b.save.Domains, func(x, y Domain) int {
		if c := cmp.Compare(x.Kind, y.Kind); c != 0 {
			return c
		}
		return natural(x.ID, y.ID)
	})
	if len(b.root.Saves) >= b.opt.Limits.Saves {
		b.root.Counts.SavesLeftOut++
		return
	}
	b.root.Saves = append(b.root.Saves, b.save)
}

// noteMixed names the domains that hold another epoch than the save is called by, or where nothing calls
// it, than the first one that says its own.
func (b *builder) noteMixed() {
	want, as := b.save.Epoch, ""
	for i := range b.save.Domains {
		d := &b.save.Domains[i]
		switch {
		case !d.Own || !d.Epoch.OK:
		case !want.OK:
			want, as = d.Epoch, ", by "+d.Witness
		case d.Epoch != want:
			b.problem(&b.save, Problem{CheckWitness, Mixed, d.File, fmt.Sprintf("got epoch %d by %s; want %d%s", d.Epoch.V, d.Witness, want.V, as)})
		}
	}
}

// natural orders numbers in texts by their value: "rank 9" before "rank 10".
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			m, n := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); c != 0 {
				return c
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			break
		}
		a, b = a[1:], b[1:]
	}
	return strings.Compare(a, b)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
