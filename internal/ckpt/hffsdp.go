// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Names of accelerate under FSDP: folders of DCP, or with FULL_STATE_DICT files.
const (
	fsdpBegin     = "pytorch_model_fsdp"
	fsdpSingle    = fsdpBegin + ".bin"
	fsdpFolder    = fsdpBegin + "_"
	fsdpOptimizer = "optimizer.bin"
	oldFSDPFolder = "pytorch_model_" // of older versions
)

// fsdpModel is the first thing of a folder that accelerate calls as the model of FSDP, in whichever form; "" for none.
func fsdpModel(f *folder) string {
	for _, e := range f.entries {
		if strings.HasPrefix(e.Name(), fsdpBegin) {
			return e.Name()
		}
	}
	return ""
}

// fsdpShards is the number of the folder that holds the optimizer's shards, as of FSDP alone; false where there is none.
func (s *scan) fsdpShards(f *folder) (string, bool) {
	for _, e := range f.entries {
		if n, ok := numbered(e.Name(), "optimizer_"); ok && s.isFolder(f, e) {
			return quantity(n), true
		}
	}
	return "", false
}

// fsdpIn is the path of a model of FSDP in one of the saves; "" where none has one.
func (s *scan) fsdpIn(saves []dated) string {
	for _, d := range saves {
		if f, err := s.folderOf(d); err == nil {
			if name := fsdpModel(f); name != "" {
				return f.join(name)
			}
		}
	}
	return ""
}

// fsdp reads the weights that FSDP saves beside those of save_model, and that a resume loads instead of
// them. They go with the optimizer: its folder with a folder, optimizer.bin with one file.
func (h *hf) fsdp() bool {
	found := h.sharded(fsdpFolder, model.DomainModel)
	number, shards := h.fsdpShards(h.f)
	switch {
	case h.f.has(fsdpSingle):
		h.torchModel(h.f.join(fsdpSingle), nil)
		return true
	case found, fsdpModel(h.f) != "":
	case shards && !h.sharded(oldFSDPFolder, model.DomainModel):
		h.missing(h.domain(model.DomainModel, fsdpFolder+number, ""), CheckShards, h.f.join(fsdpFolder+number), "got no such folder; want it beside optimizer_%s: a resume under FSDP loads both", number)
		return true
	case shards:
		return true
	case h.f.has(fsdpOptimizer) && !h.f.has("optimizer.pt") && (h.fsdpBeside != "" || !h.f.has(torchSingle) && !h.f.has(torchIndex)): // older versions called it pytorch_model.bin
		why := "a resume under FSDP loads both"
		if h.fsdpBeside != "" {
			why += ", as from " + h.fsdpBeside
		}
		h.missing(h.domain(model.DomainModel, fsdpSingle, ""), CheckShards, h.f.join(fsdpSingle), "got no such file; want it beside %s: %s", fsdpOptimizer, why)
		return true
	}
	return found
}
