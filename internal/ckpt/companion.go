// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"fmt"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// companions are files that a framework writes into every save of a job or into none, and of
// which a save that lacks them does not tell which. Where another save of the folder has one,
// parts of this save were lost, or are being deleted.
var companions = []string{
	"config.json", "adapter_config.json", "generation_config.json", "scaler.pt", "scheduler.pt",
	"context", "trainer.yaml", "model_config.yaml",
}

// trainingCompanions are those that no save of weights alone has.
var trainingCompanions = []string{"scaler.pt", "scheduler.pt"}

// companionsOf returns which of them any of the saves has.
func (s *scan) companionsOf(paths []string) map[string]string {
	have := map[string]string{}
	for _, p := range paths {
		f, err := s.folder(p)
		if err != nil {
			continue
		}
		for _, c := range companions {
			if f.has(c) && have[c] == "" {
				have[c] = p
			}
		}
	}
	return have
}

// accompanied doubts a save that lacks what another of its folder has.
func (b *builder) accompanied(f *folder, have map[string]string) {
	for _, c := range companions {
		if b.save.WeightsOnly != "" && slices.Contains(trainingCompanions, c) {
			continue
		}
		if by := have[c]; by != "" && !f.has(c) {
			i := b.domain(model.DomainModel, c, "")
			b.doubt(i, model.DomainTentative, Problem{CheckRetention, Suspect, f.join(c), fmt.Sprintf("got no such file; want it, as in %s: parts were lost, or are being deleted", by)})
		}
	}
}
