// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"path"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	megatronTracker = "latest_checkpointed_iteration.txt"
	megatronRelease = "release"
	megatronPrefix  = "iter_"
	megatronMeta    = "metadata.json"
	megatronCommon  = "common.pt"

	numberOfSave = "the number of a save" // what trackers hold
)

// rootMegatron reads Megatron's folder: iter_0001000 and so on, and the tracker that names
// the one to load. Its loader takes what the tracker says, whole or not.
func rootMegatron(s *scan, f *folder) bool {
	saves := s.dated(f, megatronPrefix)
	if len(saves) == 0 && (!f.has(megatronTracker) || f.has(deepspeedLatest)) { // Megatron-DeepSpeed has both
		return false
	}
	t := s.tracker(f, megatronTracker, func(text string) (int64, bool) {
		if text == megatronRelease {
			return 0, true // a model without an iteration begins at 0
		}
		return number(text)
	})
	if f.has(megatronRelease) {
		saves = append([]dated{{path: f.join(megatronRelease), name: megatronRelease}}, saves...)
	}
	for _, d := range saves {
		s.readMegatron(d, t)
	}
	s.root.Resumes = append(s.root.Resumes, megatronResume(s, t))
	return true
}

func megatronResume(s *scan, t *tracker) Resume {
	name := fmt.Sprintf("iter_%07d", t.epoch.V) // whatever else has the number
	if t.text == megatronRelease {
		name = megatronRelease
	}
	return t.resume(s, path.Join(path.Dir(t.file), name), numberOfSave)
}

// readMegatron reads one iteration: DCP files with a metadata.json, or a folder for each
// model-parallel rank.
func (s *scan) readMegatron(d dated, t *tracker) {
	sub, err := s.folderOf(d)
	if err != nil {
		s.unreadable(FormatMegatronLegacy, d, err)
		return
	}
	format := FormatMegatronLegacy
	dist := isDCP(sub) || sub.has(megatronMeta)
	if dist {
		format = FormatMegatronDist
	}
	b := s.newSave(format, d.path, model.Some(d.epoch))
	b.initial = d.name == megatronRelease
	if dist {
		b.readMegatronDist(sub)
		noteMegatronRNG(b, sub)
	} else {
		if t.there && t.err == nil && t.epoch.V == d.epoch {
			b.last = &marker{name: t.file, mod: t.mod}
		}
		b.readMegatronLegacy(sub)
	}
	b.point(t)
	b.done()
}

// readMegatronDist: shards, a barrier, .metadata, metadata.json, integrity.json, in this order.
func (b *builder) readMegatronDist(f *folder) {
	b.readDCP(f)
	b.readMegatronFiles(f)
}

// hasMegatronFile reports whether a folder of DCP has what only Megatron writes there. A metadata.json that can be read
// and names no backend is an application's own.
func (s *scan) hasMegatronFile(f *folder) bool {
	if f.has(megatronCommon) || f.has(megatronIntegrity) || !f.has(megatronMeta) {
		return f.has(megatronCommon) || f.has(megatronIntegrity)
	}
	var meta any
	if err := s.json(f.join(megatronMeta), &meta); err != nil {
		return true
	}
	doc, _ := meta.(map[string]any)
	_, backend := doc["sharded_backend"]
	return backend
}

// readMegatronFiles reads what Megatron adds to a save of DCP.
func (b *builder) readMegatronFiles(f *folder) {
	name := f.join(megatronMeta)
	i := b.domain(model.DomainCommit, megatronMeta, name)
	if m := b.shard(i, name, 1, nil); m != nil {
		m.close()
		var meta struct {
			Backend string `json:"sharded_backend"`
		}
		if err := b.json(name, &meta); err != nil {
			b.unread(i, CheckTorn, name, err)
		} else if meta.Backend != "torch_dist" {
			b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, name, "got sharded_backend " + quote(meta.Backend) + "; want torch_dist"})
		}
	}
	if f.has(megatronCommon) || !b.hasCommon { // of older versions; newer ones keep it with the tensors
		name := f.join(megatronCommon)
		i := b.domain(model.DomainModel, "common", name)
		if z := b.torchShard(i, name, nil); z != nil {
			if n, ok := z.number("iteration"); ok {
				b.hold(i, n, "iteration", name)
			}
			noteMegatronCommon(b, z, name)
		}
	}
	noteWeightsOfDCP(b, noOptimizerItem+" (--no-save-optim)")
	b.readIntegrity(f)
	b.readEnergon(f, 0)
}

// megatronRank is a folder of one model-parallel rank: mp_rank_TT[_PPP][_EEE].
type megatronRank struct {
	name  string
	parts []int64
}

func megatronRanks(f *folder) []megatronRank {
	var out []megatronRank
	for _, e := range f.entries {
		rest, ok := strings.CutPrefix(e.Name(), "mp_rank_")
		if !ok {
			continue
		}
		r := megatronRank{name: e.Name()}
		for part := range strings.SplitSeq(rest, "_") {
			n, ok := number(part)
			if !ok {
				r.parts = nil
				break
			}
			r.parts = append(r.parts, n)
		}
		if len(r.parts) > 0 {
			out = append(out, r)
		}
	}
	return out
}
