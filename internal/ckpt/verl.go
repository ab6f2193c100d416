// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// verl's layout, of verl/utils/checkpoint and its trainers: global_step_N/ROLE, a role being actor or critic
// (of supervised fine-tuning the folder itself), data.pt, and the tracker of Megatron's name, last.
const (
	verlPrefix   = "global_step_"
	verlData     = "data.pt"
	verlDist     = "dist_ckpt"   // of the Megatron backend
	verlHF       = "huggingface" // configuration, and weights where they are asked for
	verlConfig   = "fsdp_config.json"
	easyTracker  = "checkpoint_tracker.json" // of EasyR1, a fork
	easyDataFile = "dataloader.pt"
)

var (
	verlShard    = regexp.MustCompile(`^(model|optim|extra_state)_world_size_(\d+)_rank_(\d+)\.pt$`)
	verlDataRank = regexp.MustCompile(`^data_(\d+)\.pt$`)
)

// verlNames are roles by their names alone: one that was cut off has nothing else.
var verlNames = []string{"actor", "critic"}

// verlKinds are the parts that each rank writes, by the beginning of their names.
var verlKinds = []struct {
	name string
	kind model.DomainKind
}{{"model", model.DomainModel}, {"optim", model.DomainOptimizer}, {"extra_state", model.DomainRNG}}

// isVerlRole reports whether a folder holds the state of one role.
func isVerlRole(f *folder) bool {
	return f.has(verlDist) || f.has(verlConfig) || slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool { return verlShard.MatchString(e.Name()) })
}

// verlRoles names the folders of roles in a save; "" is the save itself.
func (s *scan) verlRoles(f *folder) (roles []string) {
	if isVerlRole(f) {
		return []string{""}
	}
	s.eachFolder(f, func(e fs.DirEntry) {
		sub, err := s.folder(f.join(e.Name()))
		if err == nil && isVerlRole(sub) || slices.Contains(verlNames, e.Name()) {
			roles = append(roles, e.Name())
		}
	})
	return roles
}

// rootVerl reads the folder of verl's trainers. Their loader takes what the tracker names.
func rootVerl(s *scan, f *folder) bool {
	saves := s.dated(f, verlPrefix)
	if len(saves) == 0 || !f.has(megatronTracker) && !f.has(easyTracker) && !s.anySave(saves, func(f *folder) bool { return len(s.verlRoles(f)) > 0 }) {
		return false
	}
	t := s.verlTracker(f)
	roles := map[string]string{}
	for _, d := range saves {
		if sub, err := s.folderOf(d); err == nil {
			for _, role := range s.verlRoles(sub) {
				roles[role] = d.path
			}
		}
	}
	megatron := s.anySave(saves, func(f *folder) bool { return s.verlMegatron(f) })
	s.readEach(FormatVerl, saves, func(b *builder, f *folder) {
		verlReader{b}.readVerl(f, roles, megatron)
		b.point(t)
	})
	want := numberOfSave
	if t.file == f.join(easyTracker) {
		want = "last_global_step, " + want
	}
	s.root.Resumes = append(s.root.Resumes, t.resume(s, f.join(verlPrefix+t.text), want))
	return true
}

// verlTracker reads the tracker, or that of EasyR1.
func (s *scan) verlTracker(f *folder) *tracker {
	if f.has(megatronTracker) || !f.has(easyTracker) {
		return s.tracker(f, megatronTracker, number)
	}
	var doc struct {
		Last *int64 `json:"last_global_step"`
	}
	err := s.json(f.join(easyTracker), &doc)
	t := s.tracker(f, easyTracker, func(string) (int64, bool) {
		if err != nil || doc.Last == nil {
			return 0, false
		}
		return *doc.Last, true
	})
	if t.err == nil {
		t.text = quantity(t.epoch.V)
	}
	return t
}

// verlMegatron reports whether a role has the files that Megatron adds to DCP.
func (s *scan) verlMegatron(f *folder) bool {
	return slices.ContainsFunc(s.verlRoles(f), func(role string) bool {
		sub, err := s.folder(path.Join(f.path, role, verlDist))
		return err == nil && s.hasMegatronFile(sub)
	})
}

func saveVerl(s *scan, f *folder) bool {
	roles := s.verlRoles(f)
	epoch, named := numbered(s.name, verlPrefix)
	if len(roles) == 0 {
		return false
	}
	b := s.newSave(FormatVerl, f.path, some(epoch, named))
	verlReader{b}.readVerl(f, nil, s.verlMegatron(f))
	b.done()
	return true
}

// verlReader reads saves of verl.
type verlReader struct{ *builder }

// readVerl reads one save: what each rank of each role wrote, and the state of the data. siblings are the
// roles of other saves, and megatron reports whether any has the files of Megatron's.
func (b verlReader) readVerl(f *folder, siblings map[string]string, megatron bool) {
	roles := b.verlRoles(f)
	for _, role := range roles {
		if role == "" {
			b.readVerlRole(f, "", megatron)
		} else if sub := b.subfolder(f.join(role), role, model.DomainModel); sub != nil {
			b.readVerlRole(sub, role, megatron)
		}
	}
	for _, role := range slices.Sorted(maps.Keys(siblings)) {
		if role != "" && !slices.Contains(roles, role) {
			b.missing(b.domain(model.DomainModel, role, ""), CheckRetention, f.join(role), "got no state of %s; want it, as in %s", role, siblings[role])
		}
	}
	if len(roles) == 0 && len(siblings) == 0 {
		b.missing(b.domain(model.DomainModel, "actor", ""), CheckShards, f.path, "got no state of any role; want actor/model_world_size_N_rank_0.pt or actor/%s", verlDist)
	}
	b.readVerlData(f)
}

// readVerlData reads the state of the data: one file, or one of each data-parallel rank.
func (b verlReader) readVerlData(f *folder) {
	var ranks []int64
	found := false
	for _, e := range f.entries {
		name := f.join(e.Name())
		at := verlDataRank.FindStringSubmatch(e.Name())
		switch {
		case e.Name() == verlData, e.Name() == easyDataFile:
			b.torchShard(b.domain(model.DomainDataLoader, e.Name(), name), name, nil)
		case at != nil:
			n, _ := number(at[1])
			ranks = append(ranks, n)
			b.torchShard(b.domain(model.DomainDataLoader, "dp "+rankID(n), name), name, nil)
		default:
			continue
		}
		found = true
	}
	if !found {
		b.missing(b.domain(model.DomainDataLoader, verlData, ""), CheckShards, f.join(verlData), "got no state of the data; want it: without it a resume starts the data from its beginning")
	}
	b.contiguous(ranks, func(n int64) { // how many there are, nothing says
		b.missing(b.domain(model.DomainDataLoader, "dp "+rankID(n), ""), CheckShards, f.path, "got no state of the data of data-parallel rank %d; want it", n)
	})
}

// contiguous calls missing for each number below the highest that is not there.
func (b *builder) contiguous(ranks []int64, missing func(int64)) {
	if len(ranks) == 0 {
		return
	}
	slices.Sort(ranks)
	for n := range min(ranks[len(ranks)-1], int64(b.opt.Limits.Domains)) {
		if _, ok := slices.BinarySearch(ranks, n); !ok {
			missing(n)
		}
	}
}

// readVerlRole reads the state of one role: of FSDP a file of each rank, of Megatron a save of torch_dist.
func (b verlReader) readVerlRole(f *folder, role string, megatron bool) {
	if f.has(verlDist) {
		b.readVerlMegatron(f, role, megatron)
		return
	}
	v := &verlRole{builder: b.builder, f: f, id: strings.TrimPrefix(role+" ", " ")}
	v.read()
}

// readVerlMegatron reads a role of the Megatron backend. Where its shards hold no weights, those of the
// folder huggingface are loaded.
func (b verlReader) readVerlMegatron(f *folder, role string, megatron bool) {
	id := strings.TrimPrefix(role+"/", "/") + verlDist
	sub := b.subfolder(f.join(verlDist), id, model.DomainModel)
	if sub == nil {
		return
	}
	read := (*builder).readMegatronDist
	if !megatron {
		read = readWholeDCP
	}
	inner := b.within(sub, FormatMegatronDist, id, read)
	if slices.ContainsFunc(inner.save.Domains, func(d Domain) bool { return d.Kind == model.DomainModel && d.ID != "common" }) || f.has("adapter_checkpoint") {
		return
	}
	weights, err := b.folder(f.join(verlHF))
	if err != nil || !slices.ContainsFunc(weights.entries, func(e fs.DirEntry) bool { return isSafetensors(e) || e.Name() == safetensorsIndex }) {
		b.missing(b.domain(model.DomainModel, role+" weights", ""), CheckShards, f.path, "got no weights in %s and none in %s; want them in one of both", verlDist, verlHF)
		return
	}
	b.within(weights, FormatSafetensors, strings.TrimPrefix(role+"/", "/")+verlHF, (*builder).readSafetensors)
}
