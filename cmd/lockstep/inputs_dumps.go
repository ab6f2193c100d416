// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/regular"
)

// strangeFile is a file whose name is one of a dump, and whose content is none: a writer
// that was killed leaves it empty or cut.
type strangeFile struct {
	input
	named  bool
	err    error
	folder bool
}

// namedAsDump reports whether a file's name ends as those of dumps do. Dumps have no
// extension, or one that says how they are written.
func namedAsDump(path string) bool {
	_, _, ok := flightrecorder.RankOf(path)
	return ok
}

// series are dumps of one folder whose names differ in the rank.
type series struct{ dir, prefix string }

func seriesOf(path string) series {
	_, prefix, _ := flightrecorder.RankOf(path)
	return series{filepath.Dir(path), prefix}
}

// damagedDumps takes for dumps what lies beside dumps under a name like theirs: that a
// rank's dump can not be read is evidence, too. So it does with what has a name that PyTorch
// gives, and, where there is nothing else at all, with what looks like damaged dumps.
func (in *inputs) damagedDumps() {
	dumps := map[series]bool{}
	for _, f := range in.files {
		if f.format == sniff.FlightRecorder {
			dumps[seriesOf(f.path)] = true
		}
	}
	nothing := len(in.files) == 0
	for _, f := range in.strange {
		if f.folder && in.below(f.path) {
			continue
		}
		if dumps[seriesOf(f.path)] || damagedDump(f.path) && (nothing || ownName.MatchString(f.path)) {
			f.format = sniff.FlightRecorder
			in.files = append(in.files, f.input)
			continue
		}
		switch info, err := os.Stat(f.path); {
		case f.folder:
		case err != nil:
			in.problems.add(f.path, -1, fmt.Errorf("find file: %w", bare(err)))
		default:
			in.pass(f.path, info, f.named, f.err)
		}
	}
	in.strange = nil
}

// folderAsDump notes a folder below dir that has the name of a dump.
func (in *inputs) folderAsDump(dir, path string) {
	if filepath.Clean(path) != filepath.Clean(dir) && namedAsDump(path) && len(in.strange) < maxFiles {
		in.strange = append(in.strange, strangeFile{input: input{path: path}, folder: true})
	}
}

// below reports whether anything is read that lies in a folder.
func (in *inputs) below(folder string) bool {
	prefix := filepath.Clean(folder) + string(filepath.Separator)
	return slices.ContainsFunc(in.files, func(f input) bool { return strings.HasPrefix(filepath.Clean(f.path), prefix) })
}

// ownName are the names that PyTorch gives to dumps.
var ownName = regexp.MustCompile(`(nccl|comm_lib)_trace_rank_\d+$`)

// dumpName finds what names of dumps have beside the rank.
var dumpName = regexp.MustCompile(`(?i)rank|dump|trace`)

// damagedDump reports whether a file, of which nothing but the name says a rank, may be what
// is left of a dump: by the rest of its name, or as it is empty or begins like a pickle. Traces
// and what something else reads are none.
func damagedDump(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || tracelike(path) || elsewhere(path, info) != "" {
		return false
	}
	return info.Size() == 0 || dumpName.MatchString(filepath.Base(path)) || startsWith(path, 0x80)
}

// startsWith reports whether b is a file's first byte.
func startsWith(path string, b byte) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	var head [1]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && head[0] == b
}
