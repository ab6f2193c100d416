// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	lightningExt   = ".ckpt"
	lightningMeta  = "meta.pt" // of the FSDP strategy, in its folder, written last
	lightningLast  = "last.ckpt"
	nemoUnfinished = "-unfinished"
	nemoLast       = "-last"
)

// stepIn finds the step in a name such as "epoch=3-step=1000.ckpt".
var stepIn = regexp.MustCompile(`(?:^|[-_])step=(\d+)`)

// lastIn are the names that ckpt_path="last" looks for.
var lastIn = regexp.MustCompile(`^last(-v\d+)?\.ckpt$`)

// rootLightning reads the folder of Lightning's ModelCheckpoint, or of NeMo's, which marks
// what is not finished by a file beside it.
func rootLightning(s *scan, f *folder) bool {
	var saves []fs.DirEntry
	nemo := false
	for _, e := range f.entries {
		name := e.Name()
		switch {
		case strings.HasSuffix(name, nemoUnfinished):
			nemo = true
		case strings.HasSuffix(name, lightningExt), s.isFolder(f, e) && stepIn.MatchString(name):
			saves = append(saves, e)
			nemo = nemo || !strings.HasSuffix(name, lightningExt)
		}
	}
	if len(saves) == 0 && !nemo {
		return false
	}
	format := FormatLightning
	if nemo {
		format = FormatNeMo
	}
	var folders []string
	for _, e := range saves {
		if s.isFolder(f, e) {
			folders = append(folders, f.join(e.Name()))
		}
	}
	have := s.companionsOf(folders)
	for k, e := range saves {
		if k >= s.opt.Limits.Saves {
			s.root.Counts.SavesLeftOut += int64(len(saves) - k)
			break
		}
		s.readLightning(format, f, e, have)
	}
	s.resumeLast(f)
	if nemo && len(s.root.Resumes) == 0 {
		s.resumeNeMo()
	}
	return true
}

// resumeNeMo: NeMo resumes from what ends with "-last", of several from that with the latest time. Which that is
// decides nothing where they differ.
func (s *scan) resumeNeMo() {
	var r Resume
	for i := range s.root.Saves {
		save := &s.root.Saves[i]
		if !strings.HasSuffix(strings.TrimSuffix(save.Path, lightningExt), nemoLast) {
			continue
		}
		if r.Path != "" && r.Epoch != save.Epoch {
			r.Epoch = model.Optional[int64]{}
		} else {
			r.Epoch = save.Epoch
		}
		r.Path, r.By = save.Path, "the name that ends with "+nemoLast
	}
	if r.Path != "" {
		s.root.Resumes = append(s.root.Resumes, r)
	}
}

// resumeLast: ckpt_path="last" takes last.ckpt, whatever is in it, or of last-v1.ckpt and so on that
// with the latest time. Which that is decides nothing where they differ.
func (s *scan) resumeLast(f *folder) {
	var r Resume
	for _, e := range f.entries {
		if !lastIn.MatchString(e.Name()) {
			continue
		}
		path, first := f.join(e.Name()), r.Path == ""
		var epoch model.Optional[int64]
		if i := slices.IndexFunc(s.root.Saves, func(save Save) bool { return save.Path == path }); i >= 0 {
			epoch = onlyOwn(&s.root.Saves[i])
		}
		switch {
		case first:
			r = Resume{Path: path, Epoch: epoch, By: e.Name()}
			continue
		case r.Epoch != epoch:
			r.Epoch = model.Optional[int64]{}
		}
		r.Path, r.By = path, "the latest of "+lightningLast+", last-v1.ckpt and so on"
	}
	if r.Path != "" {
		s.root.Resumes = append(s.root.Resumes, r)
	}
}

// readLightning reads a file, or a folder that a strategy of several processes leaves.
func (s *scan) readLightning(format Format, f *folder, e fs.DirEntry, have map[string]string) {
	name := f.join(e.Name())
	b := s.newSave(format, name, lightningStep(e.Name()))
	for _, mark := range []string{e.Name(), strings.TrimSuffix(e.Name(), lightningExt)} {
		if f.has(mark + nemoUnfinished) {
			i := b.domain(model.DomainCommit, mark+nemoUnfinished, f.join(mark+nemoUnfinished))
			b.torn(i, CheckUnfinished, f.join(mark+nemoUnfinished), "got the marker of an unfinished save; want none")
			break
		}
	}
	if s.isFolder(f, e) {
		b.lightningFolder(name, have)
	} else {
		b.lightningFile(name, "checkpoint")
	}
	b.lightningEpoch(e.Name())
	b.done()
}

// lightningStep is the step in a name.
func lightningStep(name string) model.Optional[int64] {
	m := stepIn.FindStringSubmatch(name)
	if m == nil {
		return model.Optional[int64]{}
	}
	return some(number(m[1]))
}

// lightningEpoch calls a save by its name, or by what is in it.
func (b *builder) lightningEpoch(name string) {
	b.save.Epoch = lightningStep(name)
	if !b.save.Epoch.OK {
		b.save.Epoch = onlyOwn(&b.save)
		b.unnamed()
	}
}

// lightningFile reads one file of everything.
func (b *builder) lightningFile(name, id string) {
	i := b.domain(model.DomainModel, id, name)
	z := b.torchShard(i, name, nil)
	if z == nil {
		return
	}
	n, ok := z.number("global_step")
	if !ok {
		b.torn(i, CheckWitness, name, "got no global_step; want one")
		return
	}
	b.hold(i, n, "global_step", name)
	noteLightning(b, z)
}

func (b *builder) lightningFolder(name string, have map[string]string) {
	f, err := b.folder(name)
	if err == nil {
		b.accompanied(f, have)
		err = b.lightningParts(f)
	}
	if err != nil {
		i := b.domain(model.DomainModel, "all", name)
		b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, name, err.Error()})
	}
}

func (b *builder) lightningParts(f *folder) error {
	if f.has("checkpoint") { // of the DeepSpeed strategy, the tag is always "checkpoint"
		sub, err := b.folder(f.join("checkpoint"))
		if err != nil {
			return err
		}
		b.readDeepSpeed(sub)
		return nil
	}
	weights := f
	for _, name := range []string{"weights", "model_weights"} {
		if f.has(name) { // of NeMo
			sub, err := b.folder(f.join(name))
			if err != nil {
				return err
			}
			weights = sub
		}
	}
	switch {
	case weights != f && isDCP(weights), weights.has("metadata.json"):
		b.readMegatronDist(weights)
	case isDCP(weights):
		b.readDCP(weights)
	default:
		return errors.New("got a folder of no known strategy; want one of DeepSpeed, FSDP or NeMo")
	}
	if weights == f { // of the FSDP strategy, which writes what is no tensor last
		b.lightningFile(f.join(lightningMeta), "meta")
		noteWeightsOfDCP(b, saveWeightsOnly)
	}
	return nil
}
