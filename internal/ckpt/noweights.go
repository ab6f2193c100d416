// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/safetensors"
)

// Under ZeRO 3 and FSDP a rank has none of a model's weights unless they are gathered: what it saves then is a file
// that can be read, and holds no tensor, or tensors without elements.

const noWeights = "want the weights: a model whose parts were not gathered from all ranks is saved so, as by ZeRO 3 without stage3_gather_16bit_weights_on_model_save"

// wantTensors doubts a file of weights that holds none.
func wantTensors(b *builder, i int, name string, h *safetensors.Header) {
	if !b.weighed || slices.ContainsFunc(h.Tensors, func(t safetensors.Tensor) bool { return t.End > t.Begin }) {
		return
	}
	b.torn(i, CheckShards, name, "%s; %s", elements(len(h.Tensors)), noWeights)
}

// wantStorages doubts weights of torch.save without a storage that holds anything, and such without an entry.
func wantStorages(b *builder, i int, t *torch) {
	if !b.weighed || t == nil {
		return
	}
	if n, bytes := t.Tensors(); n > 0 && bytes == 0 || n == 0 && !t.holds(t.root) {
		b.torn(i, CheckShards, t.name, "%s; %s", elements(n), noWeights)
	}
}

func elements(n int) string {
	if n == 0 {
		return "got no tensor"
	}
	return fmt.Sprintf("got %d tensors, all without elements", n)
}
