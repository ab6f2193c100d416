// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const energonPrefix = "train_dataloader_dprank"

// energonRank returns the data-parallel rank of a data loader's file.
func energonRank(name string) (int64, bool) {
	return numbered(strings.TrimSuffix(name, ".pt"), energonPrefix)
}

func hasEnergon(f *folder) bool {
	for _, e := range f.entries {
		if _, ok := energonRank(e.Name()); ok {
			return true
		}
	}
	return false
}

// energonOnly reports whether all ranks' folders hold data loaders alone.
func energonOnly(b *builder, f *folder, ranks []megatronRank) bool {
	for _, r := range ranks {
		dir, err := b.folder(f.join(r.name))
		if err != nil || dir.has("model_optim_rng.pt") || !hasEnergon(dir) {
			return false
		}
	}
	return true
}

// readEnergon reads the states of Megatron's data loaders: one file for each data-parallel
// rank, of which dp are expected, 0 where nobody says. They are domains of their own, since
// nothing commits them with the model.
func (b *builder) readEnergon(f *folder, dp int64) {
	var found []int64
	for _, r := range megatronRanks(f) {
		dir, err := b.folder(f.join(r.name))
		if err != nil { // it may hold some
			i := b.domain(model.DomainDataLoader, r.name, f.join(r.name))
			b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, f.join(r.name), err.Error()})
			continue
		}
		for _, e := range dir.entries {
			n, ok := energonRank(e.Name())
			if !ok {
				continue
			}
			name := dir.join(e.Name())
			i := b.domain(model.DomainDataLoader, "dp "+rankID(n), name)
			b.torchShard(i, name, nil)
			if dp > 0 && n >= dp {
				b.doubt(i, model.DomainTentative, Problem{CheckShards, Suspect, name, fmt.Sprintf("got a data loader of a rank that the job does not have; want %d: the folder was used before, and nothing says which of its files are new", dp)})
			}
			found = append(found, n)
		}
	}
	if len(found) == 0 {
		return
	}
	slices.Sort(found)
	if dp == 0 {
		b.save.WorldUnknown = true
		dp = found[len(found)-1] + 1
	}
	for n := range min(dp, int64(b.opt.Limits.Domains)) {
		if _, ok := slices.BinarySearch(found, n); !ok {
			i := b.domain(model.DomainDataLoader, "dp "+rankID(n), "")
			b.missing(i, CheckShards, f.path, "got no data loader of data-parallel rank %d; want it of %d", n, dp)
		}
	}
}
