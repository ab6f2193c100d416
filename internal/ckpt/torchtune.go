// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// torchtune's layout, of torchtune/training/checkpointing: epoch_N with the weights of each epoch (or step_N),
// and recipe_state/recipe_state.pt of the last, which each save overwrites.
const (
	tuneState   = "recipe_state"
	tuneFile    = "recipe_state.pt"
	tuneAdapter = "adapter_model"
)

var (
	tunePrefixes = []string{"epoch_", "step_"}
	tuneWeights  = regexp.MustCompile(`^(?:ft-)?model-\d+-of-\d+\.(safetensors|bin)$`)
)

// isTorchtune reports whether a folder has weights as torchtune names them and no others do.
func isTorchtune(f *folder) bool {
	return f.has(tuneAdapter+".pt") || f.has(tuneFile) ||
		slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), "ft-model-") })
}

// rootTorchtune reads the folder that a recipe writes to. Its loader takes the weights of the highest epoch,
// and the only state of the recipe that there is.
func rootTorchtune(s *scan, f *folder) bool {
	for _, prefix := range tunePrefixes {
		saves := s.dated(f, prefix)
		if len(saves) == 0 || !f.has(tuneState) && !s.anySave(saves, isTorchtune) {
			continue
		}
		last := saves[len(saves)-1]
		have := s.siblingsOf(paths(saves), func(name string) bool {
			return strings.HasPrefix(name, tuneAdapter) || tuneWeights.MatchString(name) || name == safetensorsIndex || name == torchIndex
		})
		s.readEach(FormatTorchtune, saves, func(b *builder, sub *folder) {
			r := tuneReader{b}
			r.readTorchtune(sub)
			b.expectSiblings(sub, have, func(string) model.DomainKind { return model.DomainModel })
			switch state := f.join(tuneState) + "/" + tuneFile; {
			case sub.has(tuneFile):
				r.tuneRecipe(sub.join(tuneFile), prefix)
			case sub.path == last.path && !f.has(tuneState):
				b.save.WeightsOnly = "there is no " + tuneState + ", which no save after the last epoch leaves"
			case sub.path == last.path:
				r.tuneRecipe(state, prefix)
			default:
				b.missing(b.domain(model.DomainOptimizer, tuneState, ""), CheckShards, state, "got the state of a later save, which overwrites it; want that of this one")
			}
		})
		s.highest(saves, "the highest "+prefix+"N, with "+tuneState+"/"+tuneFile)
		return true
	}
	return false
}

// tuneReader reads saves of torchtune.
type tuneReader struct{ *builder }

// readTorchtune reads the weights of one epoch, in whichever form they are.
func (b tuneReader) readTorchtune(f *folder) {
	if isDCP(f) {
		b.readDCP(f)
		return
	}
	found := false
	for _, index := range []struct {
		name  string
		shard func(string, *marker) map[string]bool
	}{
		{safetensorsIndex, func(name string, _ *marker) map[string]bool { return b.safetensorsShard(name, nil) }},
		{torchIndex, func(name string, _ *marker) map[string]bool { return b.torchModel(name, nil) }},
	} {
		if f.has(index.name) {
			b.readIndex(f, index.name, index.shard)
			found = true
		}
	}
	for _, e := range f.entries {
		name := f.join(e.Name())
		if _, read := b.at[model.Domain{Kind: model.DomainModel, ID: e.Name()}]; read {
			continue
		}
		switch ext := e.Name(); {
		case isSafetensors(e):
			b.safetensorsShard(name, nil)
		case strings.HasSuffix(ext, ".pt") && ext != tuneFile, strings.HasSuffix(ext, ".bin"), strings.HasSuffix(ext, ".pth"):
			b.torchModel(name, nil)
		default:
			continue
		}
		found = true
	}
	if !found {
		b.missing(b.domain(model.DomainModel, "weights", ""), CheckShards, f.path, "got no weights; want model-00001-of-00001.safetensors, %s.pt or the like", tuneAdapter)
	}
	b.tuneShards(f)
}

// tuneShards looks for shards that others name, "1-of-4".
func (b tuneReader) tuneShards(f *folder) {
	for _, e := range f.entries {
		of, ok := shardOf(e.Name())
		if !ok || !tuneWeights.MatchString(e.Name()) {
			continue
		}
		begin, rest, _ := strings.Cut(e.Name(), "model-")
		width := digits(rest)
		for n := range min(of, int64(b.opt.Limits.Domains)) {
			text := quantity(n + 1)
			name := begin + "model-" + strings.Repeat("0", max(width-len(text), 0)) + text + rest[width:]
			if _, known := b.at[model.Domain{Kind: model.DomainModel, ID: name}]; !f.has(name) && !known {
				b.missing(b.domain(model.DomainModel, name, ""), CheckShards, f.join(name), "got no such file; want it of %d shards", of)
			}
		}
		return
	}
}

// tuneRecipe reads the state of the recipe: the optimizer, and how many epochs it has run.
func (b tuneReader) tuneRecipe(name, prefix string) {
	i := b.domain(model.DomainOptimizer, tuneState, name)
	z := b.torchShard(i, name, nil)
	if z == nil {
		return
	}
	if prefix == "step_" {
		for _, key := range []string{"steps_run", "global_step"} {
			if n, ok := z.number(key); ok {
				b.hold(i, n, key, name)
				break
			}
		}
	} else if n, ok := z.number("epochs_run"); ok && n > 0 {
		b.hold(i, n-1, "epochs_run less 1", name)
	}
	z.wantOptimizer(z.get("optimizer"))
}
