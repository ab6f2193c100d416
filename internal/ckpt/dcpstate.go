// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// dcpState is what the items of a save of DCP are of, by their names.
type dcpState struct {
	any       bool
	optimizer bool
	model     bool   // a key is one that applications give to a model
	other     string // the first key that is not known
	trainer   string // the key of a trainer, which may hold anything
}

// note notes what an item is of.
func (d *dcpState) note(n *dcpNames, fqn string) {
	d.any = true
	if d.optimizer {
		return // and of a job
	}
	d.optimizer = n.isOptimizer(fqn)
	parts := n.parts(fqn)
	key := bareWord(parts[0])
	switch {
	case slices.Contains(modelKeys, key):
		d.model = true
	case strings.HasPrefix(key, "trainer"):
		d.trainer = key
	case dcpKind(fqn) == model.DomainModel && !n.isStep(fqn) && !slices.Contains(jobKeys, key):
		d.other = cmp.Or(d.other, key)
	}
}

// unknown is a key of which is not known what lies under it, "" where there is none. Without a key of a model the
// items are the parameters of one.
func (d *dcpState) unknown() string {
	if d.model {
		return cmp.Or(d.trainer, d.other)
	}
	return d.trainer
}

// readWholeDCP reads a save of DCP that has the optimizer, too, if anything of the save around it has one.
func readWholeDCP(b *builder, f *folder) {
	b.readDCP(f)
	noteWeightsOfDCP(b, noOptimizerItem)
}

// readOptimizerDCP reads a save of DCP that is of an optimizer alone.
func readOptimizerDCP(b *builder, f *folder) {
	b.readDCP(f)
	i, read := b.at[model.Domain{Kind: model.DomainCommit, ID: dcpMetadata}]
	if read && b.save.Domains[i].State == model.DomainCommitted && !b.items.optimizer && (b.items.model || !b.items.any) {
		b.torn(i, CheckShards, f.join(dcpMetadata), "got no item of an optimizer; want its state: a resume needs it")
	}
}

// noteWeightsOfDCP notes that the items of a save of DCP are of a model alone, or that nothing tells.
func noteWeightsOfDCP(b *builder, why string) {
	if !b.items.any || b.items.optimizer || b.save.has(model.DomainOptimizer) || b.initial {
		return
	}
	if key := b.items.unknown(); key != "" {
		b.save.Unproven = cmp.Or(b.save.Unproven, "no item in .metadata is called as those of an optimizer are, and nothing says what lies under "+quote(key)+
			": a resume may lack its optimizer; save it under \"optimizer\" or \"optim\"")
		return
	}
	b.save.WeightsOnly = cmp.Or(b.save.WeightsOnly, why)
}
