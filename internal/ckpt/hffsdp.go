// SPDX-License-Identifier: Apache-2.0

package ckpt

import "github.com/lockstep-otel/lockstep/internal/model"

// Names of the Trainer under FSDP with FULL_STATE_DICT.
const (
	fsdpSingle    = "pytorch_model_fsdp.bin"
	fsdpOptimizer = "optimizer.bin"
)

// fsdp reads the weights that FSDP saves beside those of save_model, and that a resume loads instead of
// them: folders of DCP, or with FULL_STATE_DICT one file, which goes with optimizer.bin.
func (h *hf) fsdp() bool {
	found := h.sharded("pytorch_model_fsdp_", model.DomainModel)
	switch {
	case h.f.has(fsdpSingle):
		h.torchModel(h.f.join(fsdpSingle), nil)
		return true
	case !found && h.f.has(fsdpOptimizer) && !h.f.has("optimizer.pt") && !h.f.has(torchSingle) && !h.f.has(torchIndex): // older versions called it pytorch_model.bin
		h.missing(h.domain(model.DomainModel, fsdpSingle, ""), CheckShards, h.f.join(fsdpSingle), "got no such file; want it beside %s: a resume under FSDP loads both", fsdpOptimizer)
		return true
	}
	return found
}
