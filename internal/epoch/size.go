// SPDX-License-Identifier: Apache-2.0

package epoch

import (
	"slices"
	"unsafe"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// What single entries take beside their texts, with what maps need for them.
const (
	mapBytes        = 48
	jobBytes        = int(unsafe.Sizeof(job{})) + 4*mapBytes
	generationBytes = int(unsafe.Sizeof(generation{})) + 4*mapBytes
	saveBytes       = int(unsafe.Sizeof(save{})) + 4*mapBytes
	observerBytes   = 24
	cellBytes       = int(unsafe.Sizeof(cell{}))
	domainBytes     = 2*int(unsafe.Sizeof(model.Domain{})) + mapBytes
)

// grow counts what a generation holds from now on beside its saves.
func (g *generation) grow(bytes int) {
	g.bytes += bytes
	g.of.share.Add(bytes)
}

// measure counts the bytes of a save again, if the save is there.
func (g *generation) measure(n int64) {
	if s := g.saves[n]; s != nil {
		g.count(s)
	}
}

func (g *generation) count(s *save) {
	bytes := saveBytes + cap(s.cells)*cellBytes + s.others*cellBytes + (len(s.more)+len(s.of))*mapBytes + cap(s.told)*int(unsafe.Sizeof(uint64(0))) + s.beside
	g.of.share.Add(bytes - s.bytes)
	s.bytes = bytes
}

// Beside notes how many bytes the user of the engine keeps of a save beside what the engine holds.
func (e *Engine) Beside(id, generation string, save int64, bytes int) {
	g := e.find(id, generation)
	if g == nil || g.saves[save] == nil || g.saves[save].beside == bytes {
		return
	}
	g.saves[save].beside = bytes
	g.measure(save)
	e.shrink()
}

// shrink keeps to Config.Bytes: the largest job gives up its generations whose newest saves are
// the oldest, then the saves of the lowest epochs, then all.
func (e *Engine) shrink() {
	for e.shares.Bytes() > e.cfg.Bytes {
		j := e.shares.Largest()
		if len(j.generations) > 1 {
			e.evictGeneration(j)
			continue
		}
		if g := j.only(); g != nil && len(g.saves) > 1 {
			e.stats.SavesLost++
			e.drop(g, slices.Min(sortedKeys(g.saves)))
			continue
		}
		e.dropJob(j)
	}
}

func (j *job) only() *generation {
	for _, g := range j.generations {
		return g
	}
	return nil
}
