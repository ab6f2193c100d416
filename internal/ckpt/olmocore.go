// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// OLMo-core's layout, of src/olmo_core/train/checkpoint.py: stepN/train/rankR.pt of each rank,
// stepN/model_and_optim, a save of DCP, and .metadata.json of rank 0, last.
const (
	olmoPrefix = "step"
	olmoCommit = ".metadata.json"
	olmoState  = "model_and_optim"
	olmoTrain  = "train"
	olmoTmp    = "-tmp" // the folder has this name until it is whole
)

var olmoRank = regexp.MustCompile(`^rank(\d+)\.pt$`)

func isOLMoCore(f *folder) bool {
	return f.has(olmoState) && (f.has(olmoTrain) || f.has(olmoCommit)) || f.has(olmoTrain) && f.has(olmoCommit)
}

// rootOLMoCore reads a folder of OLMo-core's. Its loader takes the highest stepN that has the parts which
// rank 0 wrote.
func rootOLMoCore(s *scan, f *folder) bool {
	saves := s.dated(f, olmoPrefix)
	if !s.anySave(saves, isOLMoCore) {
		return false
	}
	for _, e := range f.entries {
		if name, tmp := strings.CutSuffix(e.Name(), olmoTmp); tmp && prefixed(olmoPrefix)(name) {
			s.problem(nil, Problem{CheckUnfinished, Suspect, f.join(e.Name()), "got a save under its temporary name; want none: it is under way, or was cut off"})
		}
	}
	ranks := map[string]int64{}
	for _, d := range saves {
		if sub, err := s.folder(d.path + "/" + olmoTrain); err == nil {
			ranks[d.path] = int64(len(olmoRanks(sub)))
		}
	}
	s.readEach(FormatOLMoCore, saves, func(b *builder, f *folder) {
		most := int64(0)
		for path, n := range ranks {
			if path != f.path {
				most = max(most, n)
			}
		}
		olmoReader{b}.readOLMoCore(f, most)
	})
	resume := Resume{By: "the highest stepN with its " + olmoCommit}
	for _, d := range slices.Backward(saves) {
		if s.holds(d.path, olmoCommit) && s.holds(d.path, olmoTrain+"/rank0.pt") && s.holds(d.path, olmoState+"/"+dcpMetadata) {
			resume.Path, resume.Epoch = d.path, model.Some(d.epoch)
			break
		}
	}
	s.root.Resumes = append(s.root.Resumes, resume)
	return true
}

func saveOLMoCore(s *scan, f *folder) bool {
	if !isOLMoCore(f) {
		return false
	}
	epoch, named := numbered(s.name, olmoPrefix)
	b := s.newSave(FormatOLMoCore, f.path, some(epoch, named))
	olmoReader{b}.readOLMoCore(f, 0)
	if !named {
		b.save.Epoch = onlyOwn(&b.save)
	}
	b.done()
	return true
}

func olmoRanks(f *folder) (ranks []int64) {
	for _, e := range f.entries {
		if at := olmoRank.FindStringSubmatch(e.Name()); at != nil {
			if n, ok := number(at[1]); ok {
				ranks = append(ranks, n)
			}
		}
	}
	slices.Sort(ranks)
	return ranks
}

// olmoReader reads saves of OLMo-core.
type olmoReader struct{ *builder }

// readOLMoCore reads one save; most is how many ranks' states another save of its folder has at most.
func (b olmoReader) readOLMoCore(f *folder, most int64) {
	b.jsonFile(b.domain(model.DomainCommit, olmoCommit, f.join(olmoCommit)), f.join(olmoCommit))
	writers := int64(0)
	if !f.has(olmoState) {
		b.missing(b.domain(model.DomainModel, olmoState, ""), CheckShards, f.join(olmoState), "got no such folder; want it")
	} else if sub := b.subfolder(f.join(olmoState), olmoState, model.DomainModel); sub != nil {
		inner := b.within(sub, FormatDCP, olmoState, readWholeDCP)
		countWithin(b.builder, inner, olmoState)
		writers = dcpWriters(&inner.save)
	}
	b.readOLMoTrain(f, writers, most)
}

// dcpWriters is how many ranks wrote a save of DCP, by the highest that its metadata names.
func dcpWriters(s *Save) (n int64) {
	for i := range s.Domains {
		if r, ok := numbered(s.Domains[i].ID, "rank "); ok {
			n = max(n, r+1)
		}
	}
	return n
}

// readOLMoTrain reads the state that each rank has of its own. How many there were, each says itself: all versions of
// its Trainer write world_size. Of files without it, as of a trainer of somebody's own, there were as many as wrote the
// model, or where replicas wrote none of it, as another save has.
func (b olmoReader) readOLMoTrain(f *folder, writers, most int64) {
	path := f.join(olmoTrain)
	sub, err := b.folder(path)
	if err != nil {
		sub = &folder{path: path, entries: []fs.DirEntry{}}
	}
	ranks := olmoRanks(sub)
	world := b.opt.WorldSize
	for _, r := range ranks {
		name := sub.join("rank" + quantity(r) + ".pt")
		i := b.domain(model.DomainDataLoader, rankID(r), name)
		z := b.torchShard(i, name, nil)
		if z == nil {
			continue
		}
		if n, ok := z.number("global_step"); ok {
			b.hold(i, n, "global_step", name)
		}
		alike(b.builder, z, "global_train_tokens_seen", "global_train_tokens_seen")
		if n, ok := z.number("world_size"); ok && n > 0 && b.opt.WorldSize == 0 {
			world = max(world, n)
		}
	}
	judgeShared(b.builder)
	if world == 0 {
		world = max(writers, 1)
		if n := len(ranks); n > 0 && ranks[n-1] >= world {
			world = max(most, ranks[n-1]+1)
		}
		b.save.WorldUnknown = most == 0 // no other save says either, and replicas write nothing of the model
		if most > world {
			i := b.domain(model.DomainDataLoader, rankID(most-1), "")
			b.doubt(i, model.DomainTentative, Problem{
				CheckShards, Suspect, sub.join("rank" + quantity(most-1) + ".pt"),
				"got no such file; want it, as another save has: a rank's state was lost, or the job had fewer ranks then, which --world-size " + quantity(world) + " would say",
			})
		}
	}
	b.save.World = model.Some(world)
	for r := range min(world, int64(b.opt.Limits.Domains)) {
		if _, ok := slices.BinarySearch(ranks, r); !ok {
			b.missing(b.domain(model.DomainDataLoader, rankID(r), ""), CheckShards, sub.join("rank"+quantity(r)+".pt"), "got no such file; want it of %d ranks", world)
		}
	}
}
