package ckpt

import "github.com/lockstep-otel/lockstep/internal/model"

// rootTorchtitan reads torchtitan's folder of step-N, each a DCP save. Its loader takes the
// highest one that has a .metadata, or an index of safetensors.
func rootTorchtitan(s *scan, f *folder) bool {
	steps := s.dated(f, "step-")
	if len(steps) == 0 {
		return false
	}
	resume := Resume{By: "the highest step-N with a .metadata"}
	for _, d := range steps {
		sub, err := s.folder(d.path)
		if err != nil {
			s.unreadable(FormatTorchtitan, d, err)
			continue
		}
		if (sub.has(dcpMetadata) || sub.has(safetensorsIndex)) && (!resume.Epoch.OK || d.epoch > resume.Epoch.V) {
			resume.Path, resume.Epoch = d.path, model.Some(d.epoch)
		}
		b := s.newSave(FormatTorchtitan, d.path, model.Some(d.epoch))
		if sub.has(safetensorsIndex) && !isDCP(sub) {
			b.readSafetensors(sub)
		} else {
			b.readDCP(sub)
		}
		b.done()
	}
	s.root.Resumes = append(s.root.Resumes, resume)
	return true
}

// dated is an entry whose name says its epoch.
type dated struct {
	path  string
	name  string
	epoch int64
}

func paths(ds []dated) []string {
	out := make([]string, len(ds))
	for i, d := range ds {
		out[i] = d.path
	}
	return out
}

// dated returns the folders whose names are a prefix and a number, the newest Limits.Saves of
// them, ascending.
func (s *scan) dated(f *folder, prefix string) []dated {
	var out []dated
	for _, e := range f.entries {
		if n, ok := numbered(e.Name(), prefix); ok && s.isFolder(f, e) {
			out = append(out, dated{f.join(e.Name()), e.Name(), n})
		}
	}
	return s.newest(out)
}

// unreadable lists a save that can not be looked into.
func (s *scan) unreadable(format Format, d dated, err error) {
	b := s.newSave(format, d.path, model.Some(d.epoch))
	i := b.domain(model.DomainModel, "all", d.path)
	b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, d.path, err.Error()})
	b.done()
}
