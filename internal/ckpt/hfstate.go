// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func (h *hf) optimizer() {
	if h.hasDeepSpeed() {
		h.readTags()
		return
	}
	if h.sharded("optimizer_", model.DomainOptimizer) {
		return
	}
	for _, file := range []string{"optimizer.pt", "optimizer.bin"} {
		if h.f.has(file) {
			h.single(model.DomainOptimizer, file, true, h.optimizerSteps)
			return
		}
	}
	i := h.domain(model.DomainOptimizer, "optimizer", "")
	h.missing(i, CheckShards, h.f.path, "got no optimizer; want optimizer.pt: it does not look like a save of the model alone")
}

// readTags reads the folder that DeepSpeed leaves in the save, which its own latest names.
func (h *hf) readTags() {
	var inner Root
	s := &scan{ctx: h.ctx, fsys: h.fsys, opt: h.opt, root: &inner}
	rootDeepSpeed(s, h.f)
	h.root.Counts.add(inner.Counts)
	paced := h.pace(&inner)
	for i := range inner.Saves {
		b := &builder{scan: h.scan, save: inner.Saves[i]}
		if b.save.World.OK && h.world == 0 {
			h.world = b.save.World.V
		}
		h.take(b, b.save.Path[strings.LastIndexByte(b.save.Path, '/')+1:])
	}
	for _, p := range inner.Problems {
		h.problem(&h.save, p)
	}
	h.innerLatest(&inner, paced)
}

// pace takes the step of the only tag for a count, as of the optimizer's own steps, where it is not the step of the
// save and all that is in the tag agrees on it: a trainer may make several steps of DeepSpeed in one of its own.
func (h *hf) pace(inner *Root) bool {
	if len(inner.Saves) != 1 || !h.step.OK {
		return false
	}
	tag := &inner.Saves[0]
	if !tag.Epoch.OK || tag.Epoch == h.step || onlyOwn(tag) != tag.Epoch {
		return false
	}
	of := tag.Domains[0].Domain
	for i := range tag.Domains {
		d := &tag.Domains[i]
		d.Epoch, d.Own, d.Witness = model.Optional[int64]{}, false, ""
		if d.Kind == model.DomainOptimizer {
			of = d.Domain
		}
	}
	tag.counters = append(tag.counters, counter{domain: of, of: "steps of DeepSpeed", file: tag.Path, n: tag.Epoch.V, step: h.step.V, want: h.step.V})
	tag.Problems = slices.DeleteFunc(tag.Problems, func(p Problem) bool { return p.Severity == Mixed })
	return true
}

// innerLatest compares with the save what its own latest names, of which DeepSpeed loads the model
// and the optimizer whatever else lies beside. A tag that counts at a pace of its own says no step.
func (h *hf) innerLatest(inner *Root, paced bool) {
	file := h.f.join(deepspeedLatest)
	i := h.domain(model.DomainCommit, deepspeedLatest, file)
	if len(inner.Resumes) == 0 || inner.Resumes[0].Path == "" {
		h.torn(i, CheckTracker, file, "got no name of a folder; want the one that DeepSpeed loads")
		return
	}
	r := inner.Resumes[0]
	switch {
	case !slices.ContainsFunc(inner.Saves, func(s Save) bool { return s.Path == r.Path }):
		h.missing(i, CheckTracker, r.Path, "got no such folder; want it: %s names it", deepspeedLatest)
	case r.Epoch.OK && !paced:
		h.hold(i, r.Epoch.V, "what it names", file)
	}
}

// single reads a file of torch.save. What it counts is the step that the state says, or another number
// for good reasons, such as steps that a scaler skipped: that only other saves tell.
func (h *hf) single(kind model.DomainKind, file string, needed bool, count func(*torch) (int64, bool)) {
	name := h.f.join(file)
	if !h.f.has(file) {
		if needed {
			h.missing(h.domain(kind, file, ""), CheckShards, name, "got no such file; want it")
		}
		return
	}
	i := h.domain(kind, file, name)
	z := h.torchShard(i, name, nil)
	if z == nil || !h.step.OK {
		return
	}
	h.notePlateau(i, z)
	n, ok := count(z)
	if !ok {
		return
	}
	if n == h.step.V {
		h.hold(i, n, "the count of steps", name)
	}
	h.save.counters = append(h.save.counters, counter{
		domain: h.save.Domains[i].Domain, of: file, file: name, n: n, step: h.step.V,
		want: h.step.V - h.save.skipped, skips: h.f.has("scaler.pt"), job: &h.job,
	})
}

// schedulerSteps is how often a scheduler was stepped; one that waits for a plateau counts
// evaluations.
func schedulerSteps(z *torch) (int64, bool) {
	if _, plateau := z.get("num_bad_epochs"); plateau {
		return 0, false
	}
	return z.number("last_epoch")
}

func uncounted(*torch) (int64, bool) { return 0, false }

// rngOfOne is where a job of one process keeps its states of random numbers.
const rngOfOne = "rng_state.pth"

// rng reads the states of random numbers: one file, or one of each process.
func (h *hf) rng() {
	var ranks []int64
	for _, e := range h.f.entries {
		n, ok := numbered(strings.TrimSuffix(e.Name(), ".pth"), "rng_state_")
		if !ok || !strings.HasSuffix(e.Name(), ".pth") {
			continue
		}
		ranks = append(ranks, n)
		if n > 0 {
			h.last = nil // the other processes wait for nobody
		}
		h.torchShard(h.domain(model.DomainRNG, rankID(n), h.f.join(e.Name())), h.f.join(e.Name()), nil)
	}
	slices.Sort(ranks)
	if len(ranks) == 0 {
		if h.world > 1 && (h.opt.WorldSize < 1 || !h.f.has(rngOfOne)) {
			h.expectOf(nil)
			return
		}
		h.single(model.DomainRNG, rngOfOne, true, uncounted)
		if h.world > 1 {
			name := h.f.join(rngOfOne)
			h.doubt(h.domain(model.DomainRNG, rngOfOne, name), model.DomainTentative, Problem{
				CheckShards, Suspect, name,
				"got the random states of a job of one process; want those of each of " + quantity(h.world) + " ranks, which --world-size says: leave it out where one process wrote the save",
			})
		}
		return
	}
	h.expectOf(ranks)
}

func (h *hf) expectOf(ranks []int64) {
	given := h.opt.WorldSize
	h.opt.WorldSize = h.world
	h.expectRanks(ranks, func(r int64) int { return h.domain(model.DomainRNG, rankID(r), "") })
	h.opt.WorldSize = given
}
