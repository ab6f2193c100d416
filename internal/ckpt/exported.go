// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// modelFile is a model that save_pretrained writes with torch.save.
var modelFile = regexp.MustCompile(`^(?:pytorch_model|adapter_model|diffusion_pytorch_model|model)(?:-\d+-of-\d+)?\.bin(?:\.index\.json)?$`)

// describesModel reports whether a folder says what model it has, as exports do and a job's save in a folder of its
// own does not.
func describesModel(f *folder) bool {
	return f.has("config.json") || f.has(adapterConfig) || f.has("model_index.json")
}

// isExport reports whether a folder holds a model that was exported, and no state of a job: one that is described,
// or files of safetensors that are whole. Of a save that has just begun the first file is being written.
func (s *scan) isExport(f *folder) bool {
	if !describesModel(f) {
		return s.isWholeModel(f)
	}
	if f.cut || f.has(hfState) {
		return false
	}
	return !slices.ContainsFunc(f.entries, func(e fs.DirEntry) bool {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, "."), name == hfArguments: // Trainer.save_model writes its arguments, too
			return false
		case s.isFolder(f, e):
			sub, err := s.folder(f.join(name))
			return err != nil || s.findState(sub, maxStateDepth-1) != "" && (!describesModel(sub) || !s.isExport(sub))
		}
		return !isSafetensors(e) && !modelFile.MatchString(name) && isJobState(name)
	})
}

// isWholeModel reports whether a folder holds a model in safetensors that is whole, and nothing of a job.
func (s *scan) isWholeModel(f *folder) bool {
	inner := &scan{ctx: s.ctx, fsys: s.fsys, opt: s.opt, root: &Root{}}
	found := saveSafetensors(inner, f)
	s.root.Counts.add(inner.root.Counts)
	if !found {
		return false
	}
	save := &inner.root.Saves[0]
	return save.Unproven == "" && len(save.Problems) == 0 && !slices.ContainsFunc(save.Domains, func(d Domain) bool { return d.State != model.DomainCommitted })
}
