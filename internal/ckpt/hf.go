// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	hfPrefix    = "checkpoint-"
	hfState     = "trainer_state.json"
	hfArguments = "training_args.bin"
)

// rootHF reads the folder of Hugging Face's Trainer. Its get_last_checkpoint takes the highest
// checkpoint-N, whole or not.
func rootHF(s *scan, f *folder) bool {
	saves := s.dated(f, hfPrefix)
	for _, e := range f.entries {
		if strings.HasPrefix(e.Name(), "tmp-"+hfPrefix) {
			s.problem(nil, Problem{CheckUnfinished, Suspect, f.join(e.Name()), "got a save under its temporary name; want none: it is under way, or was cut off"})
		}
	}
	if len(saves) == 0 {
		return false
	}
	last := saves[len(saves)-1]
	have := s.companionsOf(paths(saves))
	adapters := map[string]string{}
	fsdp := s.fsdpIn(saves)
	for _, d := range saves {
		sub, err := s.folderOf(d)
		if err != nil {
			s.unreadable(FormatHFTrainer, d, err)
			continue
		}
		b := s.newSave(FormatHFTrainer, d.path, model.Some(d.epoch))
		b.readHF(sub, fsdp)
		b.accompanied(sub, have)
		readAdapters(b, sub, adapters)
		b.done()
	}
	s.root.Resumes = append(s.root.Resumes, Resume{Path: last.path, Epoch: model.Some(last.epoch), By: "the highest checkpoint-N"})
	return true
}

// saveHF reads one save of the Trainer. Its trainer_state.json comes last: one that was cut off has what is
// written before, or nothing but its name.
func saveHF(s *scan, f *folder) bool {
	epoch, named := numbered(s.name, hfPrefix)
	if !f.has(hfState) && (!named && !hasTrainerFile(f) || !hasModelFile(f)) {
		return false
	}
	b := s.newSave(FormatHFTrainer, f.path, some(epoch, named))
	b.readHF(f, "")
	readAdapters(b, f, map[string]string{})
	if !named {
		b.save.Epoch = onlyOwn(&b.save)
	}
	b.done()
	return true
}

// hasTrainerFile reports whether a folder has what the Trainer writes between the model and its state.
func hasTrainerFile(f *folder) bool {
	return slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		name := e.Name()
		return slices.Contains([]string{hfArguments, "optimizer.pt", "scheduler.pt", "scaler.pt"}, name) ||
			strings.HasPrefix(name, "rng_state") && strings.HasSuffix(name, ".pth")
	})
}

// hasModelFile reports whether a folder has something of a model that the Trainer saves.
func hasModelFile(f *folder) bool {
	return slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		return isSafetensors(e) || slices.Contains([]string{"config.json", safetensorsIndex, torchIndex, torchSingle}, e.Name())
	})
}

// hf gathers one save of the Trainer.
type hf struct {
	*builder
	f         *folder
	step      model.Optional[int64] // of trainer_state.json
	modelOnly bool                  // save_only_model
	world     int64                 // processes; 0 where nothing says
	deepspeed bool
	job       hfJob
	fused     bool  // the optimizer
	unseen    int64 // steps at most that it skipped and the Trainer counted

	fsdpBeside string // the model of FSDP of a save of the folder; "" where none has one
}

// readHF: the model, training_args.bin, optimizer, scheduler, scaler and RNG states, and last,
// by rank 0 only, trainer_state.json. fsdp is the path of a model of FSDP in a save of the folder; "" where none has one.
func (b *builder) readHF(f *folder, fsdp string) {
	h := &hf{builder: b, f: f, world: b.opt.WorldSize, fsdpBeside: fsdp}
	h.state()
	h.documents()
	h.arguments()
	h.model()
	h.forms()
	if h.modelOnly && !hasTrainingState(f) {
		h.save.WeightsOnly = "training_args.bin says save_only_model, and it has no optimizer, scheduler or state of random numbers"
		return
	}
	h.optimizer()
	h.single(model.DomainScheduler, "scheduler.pt", !h.deepspeed, schedulerSteps)
	h.single(model.DomainOptimizer, "scaler.pt", false, h.noteScale)
	h.settleSkips()
	h.rng()
}

// state reads trainer_state.json, which says the step.
func (h *hf) state() {
	name := h.f.join(hfState)
	i := h.domain(model.DomainCommit, hfState, name)
	x := h.shard(i, name, 1, nil)
	if x == nil {
		return
	}
	x.close()
	var doc struct {
		Step  *int64          `json:"global_step"`
		Epoch any             `json:"epoch"`
		Every any             `json:"save_steps"`
		Logs  json.RawMessage `json:"log_history"`
	}
	if err := h.json(name, &doc); err != nil {
		h.unread(i, CheckTorn, name, err)
		return
	}
	if doc.Step == nil {
		h.torn(i, CheckWitness, name, "got no global_step; want one")
		return
	}
	h.step = model.Some(*doc.Step)
	h.job.readState(doc.Epoch, doc.Every)
	h.job.evals = evaluations(doc.Logs)
	h.last = &marker{name: name, mod: x.mod}
	h.hold(i, *doc.Step, "global_step", name)
}

// documents reads the other JSON files that the Trainer writes with the model.
func (h *hf) documents() {
	for _, name := range []string{"config.json", "generation_config.json", "adapter_config.json"} {
		if h.f.has(name) {
			h.jsonFile(h.domain(model.DomainModel, name, h.f.join(name)), h.f.join(name))
		}
	}
}

// arguments reads training_args.bin: whether the optimizer is saved at all, and how many
// processes there were.
func (h *hf) arguments() {
	name := h.f.join(hfArguments)
	z := h.torchShard(h.domain(model.DomainModel, hfArguments, name), name, nil)
	if z == nil {
		return
	}
	if v, ok := z.get("save_only_model"); ok {
		h.modelOnly = v.Int() == 1
	}
	h.job.readArguments(z)
	if n, ok := z.number("distributed_state", "num_processes"); ok && h.world == 0 && n > 0 {
		h.world = n
	}
}

// model reads the weights, in whichever form they are.
func (h *hf) model() {
	f := h.f
	fsdp := h.fsdp()
	h.weighed = !fsdp && fsdpModel(f) == "" && !h.hasDeepSpeed()
	switch {
	case f.has(safetensorsIndex):
		h.readIndex(f, safetensorsIndex, h.safetensorsShard)
	case f.has(torchIndex):
		h.readIndex(f, torchIndex, h.torchModel)
	case f.has(safetensorsSingle), f.has("adapter_model.safetensors"):
		for _, name := range []string{safetensorsSingle, "adapter_model.safetensors"} {
			if f.has(name) {
				h.safetensorsShard(f.join(name), nil)
			}
		}
	case f.has(torchSingle), f.has("adapter_model.bin"):
		for _, name := range []string{torchSingle, "adapter_model.bin"} {
			if f.has(name) {
				h.torchModel(f.join(name), nil)
			}
		}
	case fsdp:
	case h.hasDeepSpeed():
	case !f.has(adapterConfig) && hasAdapters(h.builder, f):
	default:
		i := h.domain(model.DomainModel, "weights", "")
		h.missing(i, CheckShards, f.path, "got no weights; want %s, %s or their shards", safetensorsSingle, torchSingle)
	}
}

// forms doubts weights of which there are several: the loader takes the first that it looks for, a
// single file before an index, and not what was saved last.
func (h *hf) forms() {
	var there []string
	for _, name := range []string{safetensorsSingle, torchSingle, safetensorsIndex, torchIndex} {
		if h.f.has(name) {
			there = append(there, name)
		}
	}
	if len(there) < 2 {
		return
	}
	for i := range h.save.Domains {
		if h.save.Domains[i].Kind == model.DomainModel {
			h.doubt(i, model.DomainTentative, Problem{
				CheckShards, Suspect, h.f.join(there[0]),
				"got it beside " + strings.Join(there[1:], ", ") + "; want one: the loader does not take what was saved last",
			})
			return
		}
	}
}

func (b *builder) torchModel(name string, m *marker) map[string]bool {
	i := b.domain(model.DomainModel, name[strings.LastIndexByte(name, '/')+1:], name)
	wantStorages(b, i, b.torchShard(i, name, m))
	return nil
}

// sharded reads the DCP folders that FSDP leaves: pytorch_model_fsdp_0, optimizer_0.
func (h *hf) sharded(prefix string, kind model.DomainKind) bool {
	found := false
	for _, e := range h.f.entries {
		if _, ok := numbered(e.Name(), prefix); !ok || !h.isFolder(h.f, e) {
			continue
		}
		found = true
		h.nested(e.Name(), kind)
	}
	return found
}

// nested reads a DCP folder as domains of this save.
func (h *hf) nested(name string, kind model.DomainKind) {
	sub, err := h.folder(h.f.join(name))
	if err != nil {
		i := h.domain(kind, name, h.f.join(name))
		h.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, h.f.join(name), err.Error()})
		return
	}
	inner := h.newPart(FormatDCP, sub.path, h.save.Epoch)
	inner.dated = h.dated
	if kind == model.DomainOptimizer {
		readOptimizerDCP(inner, sub)
	} else {
		inner.readDCP(sub)
	}
	h.take(inner, name)
	h.countNested(inner, name)
}

// take adds the domains of a save within this one.
func (b *builder) take(inner *builder, name string) {
	for _, d := range inner.save.Domains {
		i := b.domain(d.Kind, d.ID+" in "+name, d.File)
		to := &b.save.Domains[i]
		to.State, to.Epoch, to.Own, to.Witness = d.State, d.Epoch, d.Own, d.Witness
	}
	b.save.takeFound(&inner.save, func(d model.Domain) model.Domain {
		return model.Domain{Kind: d.Kind, ID: d.ID + " in " + name}
	})
	for _, p := range inner.save.Problems {
		b.problem(&b.save, p)
	}
	if !inner.save.FirstWrite.IsZero() {
		b.save.wrote(inner.save.FirstWrite)
	}
	b.save.WorldUnknown = b.save.WorldUnknown || inner.save.WorldUnknown
	b.save.Unproven = cmp.Or(b.save.Unproven, inner.save.Unproven)
	if inner.save.WeightsOnly != "" {
		b.save.WeightsOnly = cmp.Or(b.save.WeightsOnly, "in "+name+" "+inner.save.WeightsOnly)
	}
	b.lost = b.lost || inner.lost
}

func (h *hf) hasDeepSpeed() bool {
	h.deepspeed = h.deepspeed || slices.ContainsFunc(h.f.entries, func(e fs.DirEntry) bool {
		_, ok := numbered(e.Name(), deepspeedTag)
		return ok
	})
	return h.deepspeed
}
