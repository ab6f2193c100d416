// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"path"
	"slices"
)

// leftOverTag is the tag of DeepSpeed beside the saves of the Trainer that its save_model left there, as it does with
// ZeRO 3; no resume of the Trainer takes it. There is one, of the step of the last save or an older one. One of a later
// step is whole, and save_model wrote its arguments with it; else another job may resume from it, or this one without
// the Trainer. Of several tags it is the newest.
func (s *scan) leftOverTag(f *folder) (tag string, ok bool) {
	last, step, tags := int64(-1), int64(-1), 0
	for _, e := range f.entries {
		if n, ok := numbered(e.Name(), hfPrefix); ok {
			last = max(last, n)
		}
		if n, ok := numbered(e.Name(), deepspeedTag); ok {
			tags++
			if n >= step {
				tag, step = e.Name(), n
			}
		}
	}
	if tags != 1 {
		return tag, false
	}
	return tag, step <= last || f.has(hfArguments) && s.tornTag(f, tag) == ""
}

// tornTag is the first thing that is wrong with a tag; "" where there is none.
func (s *scan) tornTag(f *folder, tag string) string {
	inner := &scan{ctx: s.ctx, fsys: s.fsys, opt: s.opt, root: &Root{}}
	inner.opt.Verify = false
	rootDeepSpeed(inner, f)
	s.root.Counts.add(inner.root.Counts)
	if len(inner.root.Problems) > 0 {
		p := inner.root.Problems[0]
		return p.File + ": " + p.What
	}
	i := slices.IndexFunc(inner.root.Saves, func(save Save) bool { return path.Base(save.Path) == tag })
	if i < 0 {
		return f.join(tag) + " could not be read"
	}
	for _, p := range inner.root.Saves[i].Problems {
		if p.File != f.join(deepspeedLatest) {
			return p.File + ": " + p.What
		}
	}
	return ""
}

// noteTag names a tag beside saves of the Trainer, which is not judged, and what is wrong with it.
func (s *scan) noteTag(f *folder, tag string) {
	what := "got a tag of DeepSpeed beside saves of the Trainer, which never resumes from it; want none but what save_model leaves there with ZeRO 3"
	if torn := s.tornTag(f, tag); torn != "" {
		what += ", and that whole: " + torn
	}
	s.problem(nil, Problem{CheckUnfinished, Suspect, f.join(tag), what})
}
