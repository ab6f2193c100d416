// SPDX-License-Identifier: Apache-2.0

package ckpt

import "github.com/lockstep-otel/lockstep/internal/model"

// Weights is what the saves of one epoch have beside a model.
type Weights struct {
	// Why a resume of training can not take one of them, although it is whole; "" where it can take all.
	Why    string
	Export bool     // one is a model that was exported, which is its nature
	Full   []string // paths of those that have more than weights

	several bool // they lie in several places
}

// Add adds a save of the epoch; several: its parts lie in several places, and each must have its own.
func (w *Weights) Add(s *Save, several bool) {
	switch {
	case s.WeightsOnly == "":
		w.Full = append(w.Full, s.Path)
	case w.Why == "" || several:
		w.Why = s.WeightsOnly
	}
	w.Export = w.Export || s.Export
	w.several = w.several || several
}

// Alone reports whether training can not go on from what is there. In one place, one save that has more is enough.
func (w *Weights) Alone() bool {
	return w.Why != "" && !w.Export && (len(w.Full) == 0 || w.several)
}

// Sentence says that the saves are complete, and of weights alone.
func (w *Weights) Sentence() string {
	return "complete, weights only: cannot resume training, as " + w.Why
}

// Trusted is the domain as if its times were no evidence, in a save of an epoch.
func (d *Domain) Trusted(epoch model.Optional[int64]) Domain {
	out := *d
	if out.Late {
		out.State = model.DomainCommitted
		if !out.Own {
			out.Epoch = epoch
		}
	}
	return out
}
