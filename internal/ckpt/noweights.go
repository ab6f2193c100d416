// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"path"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/safetensors"
)

// Under ZeRO 3 and FSDP a rank has none of a model's weights unless they are gathered: what it saves then is a file
// that can be read, and holds no tensor, or tensors without elements.

const noWeights = "want the weights: a model whose parts were not gathered from all ranks is saved so, as by ZeRO 3 without stage3_gather_16bit_weights_on_model_save"

// wantTensors doubts a file of weights that holds none.
func wantTensors(b *builder, i int, name string, h *safetensors.Header) {
	if !b.weighed {
		return
	}
	holds := slices.ContainsFunc(h.Tensors, func(t safetensors.Tensor) bool { return t.End > t.Begin })
	if b.models.note(i, name, len(h.Tensors) == 0, holds) || holds {
		return
	}
	b.torn(i, CheckShards, name, "%s; %s", elements(len(h.Tensors)), noWeights)
}

// wantStorages doubts weights of torch.save without a storage that holds anything, and such without an entry.
func wantStorages(b *builder, i int, t *torch) {
	if !b.weighed || t == nil {
		return
	}
	n, bytes := t.Tensors()
	empty := n == 0 && !t.holds(t.root)
	if !b.models.note(i, t.name, empty, bytes > 0) && (n > 0 && bytes == 0 || empty) {
		b.torn(i, CheckShards, t.name, "%s; %s", elements(n), noWeights)
	}
}

// severalModels are the files of a save of accelerate, each of one model. One without parameters, as of a loss, leaves
// a file without tensors.
type severalModels struct {
	empty []emptyModel
	holds bool // one of them has weights
}

type emptyModel struct {
	domain int
	name   string
}

// note notes a file of a model, and reports whether it is one without tensors, which is judged beside the others.
func (m *severalModels) note(domain int, name string, empty, holds bool) bool {
	if m == nil {
		return false
	}
	m.holds = m.holds || holds
	if empty {
		m.empty = append(m.empty, emptyModel{domain, name})
	}
	return empty
}

// wantModels doubts models without tensors where the save has no other, or another save of the folder has tensors of it.
func (a *accelerated) wantModels(have siblings) {
	for _, e := range a.models.empty {
		entry := path.Base(e.name)
		switch by := have[entry]; {
		case !a.models.holds:
			a.torn(e.domain, CheckShards, e.name, "%s; %s", elements(0), noWeights)
		case by != "" && a.hasTensors(path.Join(by, entry)):
			a.torn(e.domain, CheckShards, e.name, "%s; want some, as in %s; %s", elements(0), path.Join(by, entry), noWeights)
		}
	}
}

// hasTensors reports whether a file of safetensors has tensors; false where it can not be read.
func (s *scan) hasTensors(name string) bool {
	f, h, err := s.header(name)
	if err != nil {
		return false
	}
	f.close()
	return len(h.Tensors) > 0
}

func elements(n int) string {
	if n == 0 {
		return "got no tensor"
	}
	return fmt.Sprintf("got %d tensors, all without elements", n)
}
