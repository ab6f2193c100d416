// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"path"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// isSwift reports whether a folder is a save of the Megatron trainers of ms-swift: checkpoint-N with an
// iteration of Megatron's and its tracker in it.
func isSwift(f *folder) bool {
	return !f.has(hfState) && slices.ContainsFunc(f.entries, entryIs(prefixed(megatronPrefix)))
}

// rootSwift reads a folder of ms-swift's. The user names the checkpoint-N to resume from; by default the
// highest is judged.
func rootSwift(s *scan, f *folder) bool {
	saves := s.dated(f, hfPrefix)
	if !s.anySave(saves, isSwift) || s.anySave(saves, func(f *folder) bool { return f.has(hfState) }) {
		return false
	}
	tracked := s.anySave(saves, func(f *folder) bool { return f.has(megatronTracker) })
	s.readEach(FormatSwift, saves, func(b *builder, f *folder) { readSwift(b, f, tracked) })
	s.highest(saves, "the highest checkpoint-N")
	return true
}

// readSwift reads the iteration of Megatron's in a checkpoint-N: what its tracker names, or where no save of
// the folder has one, the only one.
func readSwift(b *builder, f *folder, tracked bool) {
	var inner Root
	s := &scan{ctx: b.ctx, fsys: b.fsys, opt: b.opt, root: &inner}
	if !rootMegatron(s, f) {
		b.missing(b.domain(model.DomainModel, megatronPrefix+"N", ""), CheckShards, f.path, "got no folder iter_N; want the one of Megatron")
		return
	}
	b.root.Counts.add(inner.Counts)
	for _, p := range inner.Problems {
		b.problem(&b.save, p)
	}
	i := slices.IndexFunc(inner.Saves, func(save Save) bool { return save.Epoch == b.save.Epoch })
	if i < 0 {
		b.missing(b.domain(model.DomainModel, "iteration", ""), CheckShards, f.path, "got no iteration %d in it; want the one that it is called by", b.save.Epoch.V)
		return
	}
	save := inner.Saves[i]
	if !tracked && !f.has(megatronTracker) {
		save.Domains = slices.DeleteFunc(save.Domains, func(d Domain) bool { return d.Kind == model.DomainTracker })
		save.Problems = slices.DeleteFunc(save.Problems, func(p Problem) bool { return path.Base(p.File) == megatronTracker })
	} else if r := inner.Resumes[0]; r.Path != save.Path {
		t := b.domain(model.DomainTracker, "of Megatron", r.By)
		b.torn(t, CheckTracker, r.By, "got %s; want %s, which Megatron loads", quote(path.Base(r.Path)), path.Base(save.Path))
	}
	b.take(&builder{scan: b.scan, save: save}, path.Base(save.Path))
}

// add adds what another reading has cost.
func (c *Counts) add(d Counts) {
	c.Files += d.Files
	c.Folders += d.Folders
	c.BytesRead += d.BytesRead
	c.SavesLeftOut += d.SavesLeftOut
	c.EntriesLeftOut += d.EntriesLeftOut
	c.ProblemsLost += d.ProblemsLost
	c.TooLarge += d.TooLarge
}
