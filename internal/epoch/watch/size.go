// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"maps"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// saveBytes is what a save takes beside its texts.
const saveBytes = int(unsafe.Sizeof(save{})+unsafe.Sizeof(saveKey{})) + 48

// bytes estimates what the watch keeps of a save. The names of domains that the verdict has are the engine's.
func (s *save) bytes(k saveKey) int {
	n := saveBytes + len(k.job) + len(k.generation) + len(s.spans.last.Kind) + len(s.spans.last.ID) + cap(s.spans.kinds)*int(unsafe.Sizeof(model.Confirmation{})) +
		cap(s.verdict.Missing)*int(unsafe.Sizeof(epoch.Doubt{})) + cap(s.verdict.Held)*int(unsafe.Sizeof(epoch.Held{})) +
		cap(s.doubters)*int(unsafe.Sizeof(""))
	for i := range s.spans.kinds {
		n += len(s.spans.kinds[i].Domain.Kind) + len(s.spans.kinds[i].Domain.ID)
	}
	for i := range s.verdict.Held {
		n += cap(s.verdict.Held[i].Domains) * int(unsafe.Sizeof(model.Domain{}))
	}
	return n
}

// spare is how many more saves than after the last prune the watch may know until the next, that the engine
// has left already: a flood of them must not wait for Tick.
const spare = 512

// prune drops saves that the engine has dropped, except those with an open finding. Tick closes that finding.
func (w *Watch) prune() {
	if len(w.saves) <= 2*w.pruned+spare {
		return
	}
	maps.DeleteFunc(w.saves, func(k saveKey, _ *save) bool {
		return w.at(k) == nil && !w.engine.Has(k.job, k.generation, k.save)
	})
	w.pruned = len(w.saves)
}
