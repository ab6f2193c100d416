// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ocdbt"
)

// Levanter's layout, of src/levanter/checkpoint.py: step-N with the arrays that TensorStore wrote, and
// metadata.json of process 0 when all of them are written.
const (
	levanterMeta  = "metadata.json"
	stepPrefix    = "step-"
	maxArrayDepth = 32
)

var zarrNames = []string{".zarray", "zarr.json"}

// levanterMetadata is what metadata.json says.
type levanterMetadata struct {
	Step      *int64  `json:"step"`
	Timestamp *string `json:"timestamp"`
}

// levanter returns what metadata.json of a save of Levanter's says; false where it is another's.
func (s *scan) levanter(f *folder) (meta levanterMetadata, ok bool) {
	if !f.has(levanterMeta) || isDCP(f) || s.json(f.join(levanterMeta), &meta) != nil {
		return levanterMetadata{}, false
	}
	return meta, meta.Step != nil && meta.Timestamp != nil
}

// rootLevanter reads a folder of Levanter's. Its loader takes the save with the latest timestamp in its
// metadata.json, and of equal ones the highest step.
func rootLevanter(s *scan, f *folder) bool {
	saves := s.dated(f, stepPrefix)
	if !s.anySave(saves, func(f *folder) bool { _, ok := s.levanter(f); return ok }) {
		return false
	}
	have := s.siblingsOf(paths(saves), isArrayName)
	s.readEach(FormatLevanter, saves, func(b *builder, f *folder) { levanterReader{b}.readLevanter(f, have) })
	resume, latest := Resume{By: "the latest timestamp in a " + levanterMeta}, ""
	for _, d := range saves {
		sub, err := s.folderOf(d)
		if err != nil {
			continue
		}
		switch meta, ok := s.levanter(sub); {
		case ok && *meta.Timestamp >= latest:
			latest = *meta.Timestamp
			resume.Path, resume.Epoch = d.path, model.Some(d.epoch)
		case !ok && sub.has(levanterMeta): // the loader fails of it
			resume.Path, resume.Epoch, latest = d.path, model.Some(d.epoch), "~"
		}
	}
	s.root.Resumes = append(s.root.Resumes, resume)
	return true
}

func saveLevanter(s *scan, f *folder) bool {
	meta, ok := s.levanter(f)
	if !ok {
		return false
	}
	epoch, named := numbered(s.name, stepPrefix)
	if !named {
		epoch = *meta.Step
	}
	b := s.newSave(FormatLevanter, f.path, model.Some(epoch))
	levanterReader{b}.readLevanter(f, nil)
	b.done()
	return true
}

// isArrayName reports whether an entry of a save of Levanter's may be a folder of arrays in zarr.
func isArrayName(name string) bool {
	return !strings.Contains(name, ".") && name != "d"
}

// levanterReader reads saves of Levanter.
type levanterReader struct{ *builder }

// readLevanter reads one save: its metadata.json, and arrays in OCDBT or in zarr.
func (b levanterReader) readLevanter(f *folder, have siblings) {
	name := f.join(levanterMeta)
	commit := b.domain(model.DomainCommit, levanterMeta, name)
	if x := b.shard(commit, name, 1, nil); x != nil {
		x.close()
		var meta levanterMetadata
		switch err := b.json(name, &meta); {
		case err != nil:
			b.unread(commit, CheckTorn, name, err)
		case meta.Step == nil || meta.Timestamp == nil:
			b.torn(commit, CheckWitness, name, "got no step or timestamp; want both")
		default:
			b.hold(commit, *meta.Step, "step", name)
		}
	}
	b.expectSiblings(f, have, orbaxKind)
	i := b.domain(model.DomainModel, "arrays", f.path)
	switch {
	case f.has(ocdbt.Manifest):
		b.levanterOCDBT(i, f)
	case f.has("d"):
		b.missing(i, CheckUnfinished, f.join(ocdbt.Manifest), "got no such file; want the one that says which arrays there are")
	default:
		b.zarr(i, f)
	}
}

// levanterOCDBT reads arrays in OCDBT. A manifest of another form than is known proves nothing.
func (b levanterReader) levanterOCDBT(i int, f *folder) {
	name := f.join(ocdbt.Manifest)
	const known = 0x0cdb3a2a // big-endian, at its beginning
	head, err := b.firstBytes(name, 4)
	if err == nil && len(head) == 4 {
		switch got := binary.BigEndian.Uint32(head); got {
		case known, 0:
		default:
			if x := b.shard(i, name, 1, nil); x != nil {
				x.close()
			}
			b.anyData(i, f)
			b.save.Unproven = fmt.Sprintf("%s begins with %08x, and a manifest of OCDBT with %08x, so that nothing says which arrays there are; load the save with TensorStore", name, got, known)
			return
		}
	}
	b.ocdbt(i, f.path)
}

// anyData looks for the files of arrays beside a manifest that is not read.
func (b levanterReader) anyData(i int, f *folder) {
	sub, err := b.folder(f.join("d"))
	if err != nil || len(sub.entries) == 0 {
		b.missing(i, CheckShards, f.join("d"), "got no file of arrays; want some beside %s", ocdbt.Manifest)
	}
}

// firstBytes reads how a file begins.
func (b levanterReader) firstBytes(name string, n int64) ([]byte, error) {
	f, err := b.open(name)
	if err != nil {
		return nil, err
	}
	defer f.close()
	head := make([]byte, min(n, f.size))
	if _, err := f.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, clause(err)
	}
	return head, nil
}

// zarr looks at arrays in folders of zarr, each with a description. Chunks that hold nothing but zeros are
// not written, so that nothing says which there must be.
func (b levanterReader) zarr(i int, f *folder) {
	found := b.zarrIn(i, f, maxArrayDepth)
	if !found {
		b.missing(i, CheckShards, f.path, "got no arrays; want %s and d, or folders of zarr", ocdbt.Manifest)
		return
	}
	b.save.Unproven = f.path + " has arrays in zarr, and nothing says which of their chunks were written, so that one that is missing would leave no trace; load the save with Levanter"
}

func (b levanterReader) zarrIn(i int, f *folder, depth int) (found bool) {
	if depth == 0 {
		return false
	}
	for _, e := range f.entries {
		switch name := e.Name(); {
		case slices.Contains(zarrNames, name):
			found = true
			b.jsonFile(i, f.join(name))
		case e.IsDir(): // a link to a folder may lead back
			if sub, err := b.folder(f.join(name)); err == nil {
				found = b.zarrIn(i, sub, depth-1) || found
			} else if !errors.Is(err, fs.ErrNotExist) {
				b.doubt(i, model.DomainTentative, Problem{CheckInput, Unreadable, f.join(name), err.Error()})
			}
		}
	}
	return found
}
