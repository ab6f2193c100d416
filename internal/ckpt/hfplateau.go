// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"encoding/json"
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// A scheduler that waits for a plateau is stepped by each evaluation of the Trainer, which its state logs.

// plateau is what such a scheduler counts in a save, and the steps at which the job had evaluated.
type plateau struct {
	domain model.Domain
	file   string
	step   int64 // of the save
	n      int64
	evals  map[int64]bool // from 1 on
}

// evaluations are the steps of the entries of log_history that one evaluation wrote. Those of sets with names have other
// keys. What is no list of such entries has none.
func evaluations(history json.RawMessage) map[int64]bool {
	var entries []json.RawMessage
	if json.Unmarshal(history, &entries) != nil {
		return nil
	}
	at := map[int64]bool{}
	for _, e := range entries {
		var entry struct {
			Step    int64    `json:"step"`
			Seconds *float64 `json:"eval_runtime"`
		}
		if json.Unmarshal(e, &entry) == nil && entry.Seconds != nil && entry.Step > 0 {
			at[entry.Step] = true
		}
	}
	return at
}

// notePlateau notes a scheduler that waits for a plateau.
func (h *hf) notePlateau(i int, z *torch) {
	if _, waits := z.get("num_bad_epochs"); !waits {
		return
	}
	if n, ok := z.number("last_epoch"); ok {
		h.save.plateaus = append(h.save.plateaus, plateau{h.save.Domains[i].Domain, z.name, h.step.V, n, h.job.evals})
	}
}

// judgePlateaus doubts schedulers that have not gone on, or have gone back, since an older save in which they counted
// each evaluation, although the job has evaluated since.
func (s *scan) judgePlateaus() {
	for i := range s.root.Saves {
		save := &s.root.Saves[i]
		for _, p := range save.plateaus {
			if old := s.countedBefore(p); old != nil {
				s.doubtDomain(save, p.domain, Problem{CheckWitness, Suspect, p.file, fmt.Sprintf(
					"got a count of %d evaluations; want %d, as trainer_state.json logs, and more than %d, as in %s: it is of another save, or was started anew",
					p.n, len(p.evals), old.n, old.file)})
			}
		}
	}
}

// countedBefore returns a scheduler of an older save that counted each evaluation and at least as many as p, although
// the job has evaluated since; nil where there is none.
func (s *scan) countedBefore(p plateau) *plateau {
	for i := range s.root.Saves {
		for k := range s.root.Saves[i].plateaus {
			o := &s.root.Saves[i].plateaus[k]
			if o.step < p.step && o.n == int64(len(o.evals)) && p.n <= o.n && len(p.evals) > len(o.evals) {
				return o
			}
		}
	}
	return nil
}
