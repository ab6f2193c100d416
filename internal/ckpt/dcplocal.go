// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// readDCPLocal reads a save in which each rank committed for itself (use_collectives=False).
// No marker says that all have, and none says how many there are.
func (b *builder) readDCPLocal(f *folder, ranks []int64) {
	for _, r := range ranks {
		name := fmt.Sprintf("__%d%s", r, dcpMetadata)
		commit := b.domain(model.DomainCommit, rankID(r), f.join(name))
		if f.has(name + ".tmp") {
			b.torn(commit, CheckUnfinished, f.join(name+".tmp"), "got metadata that was not renamed; want none: a save is under way, or was cut off")
		}
		b.readDCPMetadata(f, name, commit, r)
	}
	for _, e := range f.entries {
		if r, ok := dcpRank(e.Name()); ok && strings.HasSuffix(e.Name(), ".distcp") && !f.has(fmt.Sprintf("__%d%s", r, dcpMetadata)) {
			i := b.domain(model.DomainCommit, rankID(r), "")
			b.missing(i, CheckShards, f.join(e.Name()), "got a shard without a metadata file of its rank; want both")
		}
	}
	b.judgeRaw()
	b.expectRanks(ranks, func(r int64) int { return b.domain(model.DomainCommit, rankID(r), "") })
	b.localEpoch()
}

// expectRanks lists the ranks that are not there. How many there must be, only the user knows.
func (b *builder) expectRanks(ranks []int64, domain func(int64) int) {
	world := b.opt.WorldSize
	b.save.World = some(world, world > 0)
	if world == 0 {
		b.save.WorldUnknown = true
		if len(ranks) > 0 {
			world = ranks[len(ranks)-1] + 1
		}
	}
	world = min(world, int64(b.opt.Limits.Domains))
	there := map[int64]bool{}
	for _, r := range ranks {
		there[r] = true
	}
	for r := range world {
		if !there[r] {
			b.missing(domain(r), CheckShards, b.save.Path, "got nothing of rank %d; want it of %d ranks", r, world)
		}
	}
	for _, r := range ranks {
		if r >= world {
			b.problem(&b.save, Problem{CheckShards, Suspect, b.save.Path, fmt.Sprintf("got files of rank %d; want none: the save is of %d ranks", r, world)})
		}
	}
}

// localEpoch: of each rank, what its own step says. Without one, only the folder's name does.
func (b *builder) localEpoch() {
	step := map[string]model.Optional[int64]{}
	for i := range b.save.Domains {
		if d := &b.save.Domains[i]; d.Own {
			step[d.ID] = d.Epoch
		}
	}
	for i := range b.save.Domains {
		d := &b.save.Domains[i]
		if e := step[d.ID]; !d.Own && e.OK && d.State == model.DomainCommitted {
			d.Epoch, d.Witness = e, "the step that "+d.ID+" saved"
		}
	}
}

// dcpEpoch: what one marker commits is of one save, whose step is that of any of its parts.
func (b *builder) dcpEpoch() {
	if b.save.Epoch.OK {
		return
	}
	var from *Domain
	for i := range b.save.Domains {
		switch d := &b.save.Domains[i]; {
		case !d.Own:
		case from == nil:
			from = d
		case from.Epoch != d.Epoch:
			return
		}
	}
	if from == nil {
		return
	}
	for i := range b.save.Domains {
		if d := &b.save.Domains[i]; !d.Own && d.State == model.DomainCommitted {
			d.Epoch, d.Witness = from.Epoch, from.Witness+", by the marker of all"
		}
	}
}

// uncommitted lists what a save without a readable marker has.
func (b *builder) uncommitted(f *folder) {
	for _, e := range f.entries {
		if r, ok := dcpRank(e.Name()); ok && strings.HasSuffix(e.Name(), ".distcp") {
			i := b.domain(model.DomainModel, rankID(r), f.join(e.Name()))
			b.save.Domains[i].State = model.DomainTentative
		}
	}
}

// extraShards notes files that the marker does not name: of an earlier and larger world.
func (b *builder) extraShards(f *folder, named map[string]bool) {
	if named == nil {
		return
	}
	for _, e := range f.entries {
		if !strings.HasSuffix(e.Name(), ".distcp") || named[e.Name()] {
			continue
		}
		if info, err := e.Info(); err != nil || info.Size() > 0 { // a rank of which nothing was saved leaves an empty file
			b.problem(&b.save, Problem{CheckShards, Suspect, f.join(e.Name()), "got a shard that .metadata does not name; want none: it is of another save"})
		}
	}
}
