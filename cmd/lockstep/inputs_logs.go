// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/ranklog"
)

// logLike reports whether a file's name is one of a log.
func logLike(path string) bool {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(path)), ".gz")
	return slices.Contains([]string{".log", ".out", ".err", ".stderr", ".stdout", ".txt"}, filepath.Ext(name)) ||
		name == "stderr" || name == "stdout"
}

// plainLog reports whether a file is a log by its name and its content: no dump, whatever rank its
// name says.
func plainLog(path string) bool {
	return logLike(path) && sniff.IsText(path)
}

// companions takes for logs the texts that lie beside logs of the watchdog under names like
// theirs: the rank that all others wait for has no line of it. So it does with the launcher's.
func (in *inputs) companions() {
	likes := map[string]bool{}
	for _, f := range in.files {
		if f.format == sniff.RankLog {
			for _, k := range likeness(f.path) {
				likes[k] = true
			}
		}
	}
	if len(likes) == 0 {
		return
	}
	dumps := map[series]bool{}
	for _, f := range in.files {
		if f.format == sniff.FlightRecorder {
			dumps[seriesOf(f.path)] = true
		}
	}
	take := func(f strangeFile) bool {
		if f.folder || dumps[seriesOf(f.path)] && !logLike(f.path) || !slices.ContainsFunc(likeness(f.path), func(k string) bool { return likes[k] }) || !sniff.IsText(f.path) && !sniff.IsBlank(f.path) {
			return false
		}
		in.files = append(in.files, input{path: f.path, size: f.size, format: sniff.RankLog})
		return true
	}
	in.laterAttempts()
	in.strange = slices.DeleteFunc(in.strange, take)
	in.plain = slices.DeleteFunc(in.plain, take)
	in.plain = slices.DeleteFunc(in.plain, func(f strangeFile) bool {
		launcher := !f.folder && ofLauncher(f.path)
		if launcher {
			in.files = append(in.files, input{path: f.path, size: f.size, format: sniff.RankLog})
		}
		return launcher
	})
}

// laterAttempts takes the logs of attempts behind those that have lines of the watchdog: an attempt that
// runs well has none.
func (in *inputs) laterAttempts() {
	first := map[string]int64{}
	for _, f := range in.files {
		if dir, n, ok := ranklog.Attempt(f.path); ok && f.format == sniff.RankLog {
			if old, seen := first[dir]; !seen || n < old {
				first[dir] = n
			}
		}
	}
	in.plain = slices.DeleteFunc(in.plain, func(f strangeFile) bool {
		dir, n, ok := ranklog.Attempt(f.path)
		earliest, seen := first[dir]
		later := ok && seen && n > earliest && !f.folder
		if later {
			in.files = append(in.files, input{path: f.path, size: f.size, format: sniff.RankLog})
		}
		return later
	})
}

// ofLauncher reports whether a log says that a launcher ended the ranks that were left.
func ofLauncher(path string) bool {
	r, c, err := sniff.Open(path, func(r io.Reader) io.Reader { return r })
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	return ranklog.SniffLauncher(r)
}

// likeness are the ways in which the names of two logs of a job are alike: they differ in the
// rank alone, or are the same in folders of ranks.
func likeness(path string) []string {
	dir, name := filepath.Split(filepath.Clean(path))
	out := []string{"in " + filepath.Dir(filepath.Clean(dir)) + " " + name}
	if f := ranklog.FileOf(name); f.Rank >= 0 {
		out = append(out, "beside "+dir+" "+withoutDigits(name))
	}
	return out
}

// withoutDigits is a name without its numbers.
func withoutDigits(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// passPlain reports the texts that are logs of no job.
func (in *inputs) passPlain() {
	for _, f := range in.plain {
		if info, err := os.Stat(f.path); err == nil {
			in.pass(f.path, info, f.named, f.err)
		}
	}
	in.plain = nil
}
