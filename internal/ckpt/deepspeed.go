// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	deepspeedLatest = "latest"
	deepspeedTag    = "global_step"
	// offloadedTensors is the folder of a tag with what was swapped out to a disk.
	offloadedTensors = "offloaded_tensors"
)

// Names of DeepSpeed's engine._get_ckpt_name and its siblings.
var (
	deepspeedModel  = regexp.MustCompile(`^mp_rank_(\d+)_model_states\.pt$`)
	deepspeedModel3 = regexp.MustCompile(`^zero_pp_rank_(\d+)_mp_rank_(\d+)_model_states\.pt$`)
	deepspeedOptim  = regexp.MustCompile(`^(?:bf16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt$`)
	// Of layers of a pipeline and of experts nothing says how many there are.
	deepspeedOpen = regexp.MustCompile(`^(?:layer_\d+-model_\d+-model_states|layer_\d+_expert_\d+_mp_rank_\d+_model_states|expp_rank_\d+_mp_rank_\d+_optim_states)\.pt$`)
)

func isDeepSpeed(f *folder) bool {
	return slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		n := e.Name()
		return deepspeedModel.MatchString(n) || deepspeedModel3.MatchString(n) || deepspeedOptim.MatchString(n) || deepspeedOpen.MatchString(n)
	})
}

// rootDeepSpeed reads a folder of tags, and "latest", which names one. Rank 0 writes latest
// when its own part is done, before it waits for the others. Loading follows it.
func rootDeepSpeed(s *scan, f *folder) bool {
	tags := s.deepspeedTags(f)
	if len(tags) == 0 {
		if !f.has(deepspeedLatest) {
			return false
		}
		if e, _ := f.find(deepspeedLatest); !e.Type().IsRegular() {
			return false // a link of somebody else's
		}
	}
	builders := make([]*builder, 0, len(tags))
	for _, tag := range tags {
		b := s.newSave(FormatDeepSpeed, f.join(tag.name), tag.epoch)
		b.readDeepSpeed(tag.folder)
		builders = append(builders, b)
	}
	epochs := map[string]model.Optional[int64]{}
	for i, tag := range tags {
		epochs[tag.name] = builders[i].save.Epoch
	}
	t := s.tracker(f, deepspeedLatest, func(text string) (int64, bool) {
		if e, ok := epochs[text]; ok && e.OK {
			return e.V, true
		}
		return numbered(text, deepspeedTag)
	})
	for _, b := range builders {
		b.point(t)
		b.done()
	}
	s.root.Resumes = append(s.root.Resumes, t.resume(s, f.join(t.text), "the name of a tag"))
	return true
}

// onlyOwn is the one epoch that contents say, unknown where they differ.
func onlyOwn(s *Save) model.Optional[int64] {
	var e model.Optional[int64]
	for i := range s.Domains {
		switch d := &s.Domains[i]; {
		case !d.Own:
		case !e.OK:
			e = d.Epoch
		case e != d.Epoch:
			return model.Optional[int64]{}
		}
	}
	return e
}

type deepspeedSave struct {
	name   string
	epoch  model.Optional[int64]
	folder *folder
}

func (s *scan) deepspeedTags(f *folder) []deepspeedSave {
	var out []deepspeedSave
	for _, e := range f.entries {
		if !s.isFolder(f, e) {
			continue
		}
		sub, err := s.folder(f.join(e.Name()))
		n, ok := numbered(e.Name(), deepspeedTag)
		if err != nil {
			switch {
			case !ok && e.Name() != lostAndFound: // it may be a tag of the user's
				s.problem(nil, Problem{CheckInput, Unreadable, f.join(e.Name()), err.Error()})
			case ok:
				s.unreadable(FormatDeepSpeed, dated{path: f.join(e.Name()), name: e.Name(), epoch: n}, err)
			}
			continue
		}
		if s.isUniversal(sub) {
			continue
		}
		if ok || isDeepSpeed(sub) {
			out = append(out, deepspeedSave{e.Name(), some(n, ok), sub})
		}
		if len(out) >= s.opt.Limits.Saves {
			s.root.Counts.SavesLeftOut++
			break
		}
	}
	return out
}

// isUniversal reports whether a folder is a copy of a tag that ds_to_universal.py has converted: a folder of
// each parameter in "zero", and no shard of an optimizer. A resume takes it only where it is asked to.
func (s *scan) isUniversal(f *folder) bool {
	e, ok := f.find("zero")
	return ok && s.isFolder(f, e) && !slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool { return deepspeedOptim.MatchString(e.Name()) })
}

func saveDeepSpeed(s *scan, f *folder) bool {
	if !isDeepSpeed(f) {
		return false
	}
	b := s.newSave(FormatDeepSpeed, f.path, model.Optional[int64]{})
	b.readDeepSpeed(f)
	b.done()
	return true
}

// readDeepSpeed reads one tag.
func (b *builder) readDeepSpeed(f *folder) {
	d := &deepspeed{builder: b, f: f, there: map[string]bool{}}
	for _, e := range f.entries {
		name := e.Name()
		switch {
		case deepspeedModel.MatchString(name), deepspeedModel3.MatchString(name):
			d.model(name)
		case deepspeedOptim.MatchString(name):
			d.optimizer(name)
		case deepspeedOpen.MatchString(name):
			b.torchShard(b.domain(model.DomainModel, strings.TrimSuffix(name, ".pt"), f.join(name)), f.join(name), nil)
			b.save.WorldUnknown = true
		}
	}
	if f.has(offloadedTensors) {
		b.save.WorldUnknown = true
	}
	judgeTwins(b)
	d.expect()
	if b.save.Epoch.OK {
		d.compareInner()
		d.compareScalers()
		d.compareStates()
		d.countInner()
		judgeShared(b)
		return
	}
	b.save.Epoch = onlyOwn(&b.save) // a tag of the user's: its contents say the step
	d.compareScalers()
	d.compareStates()
	d.proveInner()
	judgeShared(b)
	b.unnamed()
}
