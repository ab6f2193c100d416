// SPDX-License-Identifier: Apache-2.0

package ckptwatch

import (
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// hasOptimizer is why it is taken back that a save has no optimizer.
const hasOptimizer = "it is no complete save of weights alone"

// noOptimizer is the domain that a save of weights alone lacks: any optimizer at all, called as the place is.
func (w *Watcher) noOptimizer() model.Domain {
	return model.Domain{Kind: model.DomainOptimizer, ID: w.cfg.Where}
}

// noteWeights sees that a save of weights alone has no optimizer. One that was there and is gone was lost, which its
// own domain says.
func (w *Watcher) noteWeights(of model.EpochObservation, g *group) {
	k := key{g.epoch, w.noOptimizer()}
	if !g.alone {
		if s := w.domains[k]; s != nil && g.shaky { // what is there can not be read
			s.look = w.revision
		}
		return
	}
	if w.domains[k] == nil && w.hadOptimizer(g.epoch) {
		return
	}
	of.Domain, of.State, of.Witness = k.domain, model.DomainAbsent, cut.Text(g.weights.Sentence(), cut.MaxName)
	w.see(of, g.shaky)
}

// hadOptimizer reports whether an optimizer of a save was told to be there.
func (w *Watcher) hadOptimizer(save int64) bool {
	for k, s := range w.domains {
		if k.save == save && k.domain.Kind == model.DomainOptimizer && s.held.OK {
			return true
		}
	}
	return false
}
