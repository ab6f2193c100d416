// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"regexp"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const torchtitanPrefix = "step-"

// torchtitanStep is how torchtitan's loader finds the number in a name, wherever it stands; what it
// opens then is step-N.
var torchtitanStep = regexp.MustCompile(`step-(\d+)`)

// rootTorchtitan reads torchtitan's folder of step-N, each a DCP save. Its loader takes the
// highest one that has a .metadata, or an index of safetensors.
func rootTorchtitan(s *scan, f *folder) bool {
	steps := s.dated(f, torchtitanPrefix)
	if len(steps) == 0 {
		return false
	}
	resume := Resume{By: "the highest step-N with a .metadata"}
	for _, d := range steps {
		sub, err := s.folderOf(d)
		if err != nil { // it may be whole to the loader
			resume.Path, resume.Epoch = d.path, model.Some(d.epoch)
			s.unreadable(FormatTorchtitan, d, err)
			continue
		}
		if (sub.has(dcpMetadata) || sub.has(safetensorsIndex)) && (!resume.Epoch.OK || d.epoch > resume.Epoch.V) {
			resume.Path, resume.Epoch = f.join(fmt.Sprintf("step-%d", d.epoch)), model.Some(d.epoch)
		}
		b := s.newSave(FormatTorchtitan, d.path, model.Some(d.epoch))
		b.initial = d.epoch == 0 // a seed, of which the loader takes the model alone
		if sub.has(safetensorsIndex) && !isDCP(sub) {
			b.readSafetensors(sub)
			if !b.initial {
				b.save.WeightsOnly = "it has no files of DCP, but a model in safetensors (last_save_in_hf)"
			}
		} else {
			b.readDCP(sub)
			countTitan(b)
			noteWeightsOfDCP(b, noOptimizerItem+" (last_save_model_only)")
		}
		b.done()
	}
	s.torchtitanOthers(f, &resume)
	s.root.Resumes = append(s.root.Resumes, resume)
	return true
}

// torchtitanOthers looks for folders such as step-300.bak, which the loader takes for step-300.
func (s *scan) torchtitanOthers(f *folder, resume *Resume) {
	for _, e := range f.entries {
		at := torchtitanStep.FindStringSubmatch(e.Name())
		if len(at) == 0 || at[0] == e.Name() || !s.isFolder(f, e) {
			continue
		}
		n, ok := number(at[1])
		if !ok || resume.Epoch.OK && n <= resume.Epoch.V || !s.holds(f.join(e.Name()), dcpMetadata) && !s.holds(f.join(e.Name()), safetensorsIndex) {
			continue
		}
		resume.Path, resume.Epoch = f.join(fmt.Sprintf("step-%d", n)), model.Some(n)
		resume.By = "the highest step-N with a .metadata, here of " + e.Name()
	}
}

// holds reports whether a folder may have a file.
func (s *scan) holds(folder, name string) bool {
	_, err := fs.Stat(s.fsys, folder+"/"+name)
	return !errors.Is(err, fs.ErrNotExist)
}

// dated is an entry whose name says its epoch.
type dated struct {
	path  string
	name  string
	epoch int64
	bad   error // why it can not be looked into
}

// folderOf lists the folder of a save.
func (s *scan) folderOf(d dated) (*folder, error) {
	if d.bad != nil {
		return nil, d.bad
	}
	return s.folder(d.path)
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
		n, ok := numbered(e.Name(), prefix)
		d := dated{path: f.join(e.Name()), name: e.Name(), epoch: n}
		if overlong(e.Name(), prefix) {
			ok, d.epoch, d.bad = true, math.MaxInt64, errOverlong
		}
		if ok && s.isFolder(f, e) {
			out = append(out, d)
		}
	}
	return s.newest(out)
}

var errOverlong = errors.New("got a number of more than 64 bits in the name; want fewer")

// unreadable lists a save that can not be looked into.
func (s *scan) unreadable(format Format, d dated, err error) {
	b := s.newSave(format, d.path, model.Some(d.epoch))
	if errors.Is(err, errOverlong) {
		b.save.Misnamed = fmt.Sprintf("the number in the name of %s is larger than is read, which is %d at most", quote(d.name), d.epoch)
	}
	i := b.domain(model.DomainModel, "all", d.path)
	b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, d.path, err.Error()})
	b.done()
}
