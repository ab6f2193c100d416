// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"maps"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// What single entries take beside their texts.
const (
	saveBytes    = int(unsafe.Sizeof(save{})+unsafe.Sizeof(saveKey{})) + 48
	episodeBytes = int(unsafe.Sizeof(Episode{})+unsafe.Sizeof(saveKey{})) + 48
)

// maxOpenBytes bounds what all open episodes hold, by estimate: 1,024 that name 64 domains of 100 bytes
// each are half of it.
const maxOpenBytes = 16 << 20

// bytes estimates what the watch keeps of a save. The names of domains are the engine's.
func (s *save) bytes(k saveKey) int {
	n := saveBytes + len(k.job) + len(k.generation) + len(s.spans.last.ID) + cap(s.spans.kinds)*int(unsafe.Sizeof(model.Confirmation{})) +
		cap(s.verdict.Missing)*int(unsafe.Sizeof(epoch.Doubt{})) + cap(s.verdict.Held)*int(unsafe.Sizeof(epoch.Held{})) +
		cap(s.doubters)*int(unsafe.Sizeof(""))
	for i := range s.spans.kinds {
		n += len(s.spans.kinds[i].Domain.ID)
	}
	for i := range s.verdict.Held {
		n += cap(s.verdict.Held[i].Domains) * int(unsafe.Sizeof(model.Domain{}))
	}
	return n
}

// bytes estimates what an episode holds, the names of its domains among it: it outlives the engine's.
func (e *Episode) bytes() int {
	j := &e.Judgement
	n := episodeBytes + len(e.Job) + len(e.Generation) + len(j.Missing)*int(unsafe.Sizeof(epoch.Doubt{})) + len(j.Held)*int(unsafe.Sizeof(epoch.Held{}))
	for i := range j.Missing {
		n += len(j.Missing[i].Domain.Kind) + len(j.Missing[i].Domain.ID)
	}
	for i := range j.Held {
		for _, d := range j.Held[i].Domains {
			n += int(unsafe.Sizeof(d)) + len(d.Kind) + len(d.ID)
		}
	}
	return n
}

// begin opens an episode, and reports whether there is room.
func (w *Watch) begin(k saveKey, e *Episode) bool {
	if len(w.open) >= w.cfg.MaxEpisodes || w.openBytes+e.bytes() > maxOpenBytes {
		w.stats.Withheld++
		return false
	}
	w.open[k] = e
	w.openBytes += e.bytes()
	return true
}

// spare is how many more saves than after the last prune the watch may know until the next, that the engine
// has left already: a flood of them must not wait for Tick.
const spare = 512

// prune drops saves that the engine has dropped, except those with an open episode. Tick closes that episode.
func (w *Watch) prune() {
	if len(w.saves) <= 2*w.pruned+spare {
		return
	}
	maps.DeleteFunc(w.saves, func(k saveKey, _ *save) bool {
		return w.open[k] == nil && !w.engine.Has(k.job, k.generation, k.save)
	})
	w.pruned = len(w.saves)
}
