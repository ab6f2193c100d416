package main

import (
	"os"
	"path/filepath"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

// strangeFile is a file whose name is one of a dump, and whose content is none: a writer
// that was killed leaves it empty or cut.
type strangeFile struct {
	input
	named bool
	err   error
}

// namedAsDump reports whether a file's name ends as those of dumps do. Dumps have no
// extension, or one that says how they are written.
func namedAsDump(path string) bool {
	_, _, ok := flightrecorder.RankOf(path)
	return ok
}

// damagedDumps takes for dumps what lies beside dumps under a name like theirs: that a
// rank's dump can not be read is evidence, too.
func (in *inputs) damagedDumps() {
	type series struct{ dir, prefix string }
	dumps := map[series]bool{}
	of := func(path string) series {
		_, prefix, _ := flightrecorder.RankOf(path)
		return series{filepath.Dir(path), prefix}
	}
	for _, f := range in.files {
		if f.format == sniff.FlightRecorder {
			dumps[of(f.path)] = true
		}
	}
	for _, f := range in.strange {
		if dumps[of(f.path)] {
			f.format = sniff.FlightRecorder
			in.files = append(in.files, f.input)
			continue
		}
		if info, err := os.Stat(f.path); err == nil {
			in.pass(f.path, info, f.named, f.err)
		}
	}
	in.strange = nil
}
