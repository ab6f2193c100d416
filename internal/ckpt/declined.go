// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"io/fs"
	"regexp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// declinedLayout is a layout that is known, and not read: its saves are named, and never confirmed.
type declinedLayout struct {
	format Format
	name   *regexp.Regexp // of a save; its last group is the number that the save is called by
	has    []string       // a folder has one of these, where the name alone is not enough
	by     string         // which save a loader takes
	why    string         // what it is, and what would decide
}

var declinedLayouts = []declinedLayout{
	{
		FormatComposer, regexp.MustCompile(`^ep\d+-ba(\d+)(?:-rank\d+\.pt)?$`), nil, "the highest batch of ep*-ba*",
		"it is a save of Composer, which is not read: nothing in it says how many ranks wrote one; check that each rank has its file, or load it by load_path",
	},
	{
		FormatAutomodel, regexp.MustCompile(`^epoch_\d+_step_(\d+)$`),
		[]string{"model", "optim"},
		"the highest step of epoch_*_step_*",
		"it is a save of NeMo Automodel, which is not read as a whole: nothing in it says how many ranks wrote rng and dataloader; give its folders model and optim, one at a time",
	},
	{
		FormatDeepSpeed, regexp.MustCompile(`^global_step(\d+)_universal$`),
		[]string{"zero"},
		"latest_universal",
		"it is a copy in DeepSpeed's universal form, which is not read: nothing in it says which parameters there are; give the folder with the tag that it was made of",
	},
}

// rootDeclined names the saves of a layout that is not read.
func rootDeclined(s *scan, f *folder) bool {
	for i := range declinedLayouts {
		if s.decline(&declinedLayouts[i], f) {
			return true
		}
	}
	return false
}

func (s *scan) decline(l *declinedLayout, f *folder) bool {
	var saves []dated
	seen := map[int64]bool{}
	for _, e := range f.entries {
		at := l.name.FindStringSubmatch(e.Name())
		if at == nil || len(l.has) > 0 && !s.hasOne(f, e, l.has) {
			continue
		}
		if n, ok := number(at[1]); ok && !seen[n] {
			seen[n] = true
			saves = append(saves, dated{path: f.join(e.Name()), name: e.Name(), epoch: n})
		}
	}
	if len(saves) == 0 {
		return false
	}
	saves = s.newest(saves)
	for _, d := range saves {
		b := s.newSave(l.format, d.path, model.Some(d.epoch))
		b.save.Unproven = l.why
		b.done()
	}
	s.highest(saves, l.by)
	return true
}

// hasOne reports whether an entry is a folder with one of these in it.
func (s *scan) hasOne(f *folder, e fs.DirEntry, names []string) bool {
	if !s.isFolder(f, e) {
		return false
	}
	sub, err := s.folder(f.join(e.Name()))
	return err == nil && slices.ContainsFunc(names, sub.has)
}
