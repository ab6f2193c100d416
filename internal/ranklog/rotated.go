// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"cmp"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// partName is the end of the name of an older part of a log: "rank_0.log.1", "rank_0.log.2.gz", logrotate's
// "rank_0.log-20261120" and "rank_0.log-20261120-1795132800", the kubelet's "0.log.20261120-100000".
var partName = regexp.MustCompile(`(?i)\.(?:log|out|err|txt|stderr|stdout)(?:(\.\d{1,3})|[-.](20\d{2}-?\d{2}-?\d{2})(?:-(\d{1,10}))?)(?:\.gz)?$`)

// partOf returns the path of the log of which a file is a part by its name, and the place of the part: the
// older, the less. The log itself is the last, 0.
func partOf(path string) (log string, part int64) {
	name := filepath.Base(path)
	m := partName.FindStringSubmatchIndex(name)
	if m == nil {
		return path, 0
	}
	dir := path[:len(path)-len(name)]
	if m[2] >= 0 {
		n, _ := strconv.ParseInt(name[m[2]+1:m[3]], 10, 64) // at most 3 digits
		return dir + name[:m[2]], -n
	}
	date, _ := strconv.ParseInt(strings.ReplaceAll(name[m[4]:m[5]], "-", ""), 10, 64) // 8 digits
	second := int64(0)
	if m[6] >= 0 {
		second, _ = strconv.ParseInt(name[m[6]:m[7]], 10, 64) // at most 10 digits
	}
	const after = 10_000_000_000 // above all of these
	return dir + name[:m[4]-1], date*after + second - math.MaxInt64
}

// Names are the paths of logs that are read together.
type Names map[string]bool

// part is partOf for a file whose name is that of a part of a log: the log is there, or its name has a rank.
// "train.log.0" is a rank's, since no rotation begins at 0.
func (n Names) part(path string) (log string, part int64) {
	log, part = partOf(path)
	if part == 0 || n[log+".0"] || !n[log] && rankIn(log).Rank < 0 {
		return path, 0
	}
	return log, part
}

// File returns the file of a path, by the names of all.
func (n Names) File(path string) File {
	f := File{Path: path}
	f.Log, f.Part = n.part(path)
	of := rankIn(f.Log)
	f.Rank, f.Certain = of.Rank, of.Certain
	return f
}

// InOrder sorts parts of one log from the oldest to the latest, and leaves the logs in their order.
func InOrder[T any](files []T, path func(T) string) ([]T, Names) {
	names := Names{}
	for _, f := range files {
		names[path(f)] = true
	}
	type part struct {
		first int
		n     int64
		file  T
	}
	first := map[string]int{}
	parts := make([]part, len(files))
	for i, f := range files {
		log, n := names.part(path(f))
		if _, ok := first[log]; !ok {
			first[log] = i
		}
		parts[i] = part{first[log], n, f}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.n, b.n)) })
	out := make([]T, len(files))
	for i := range parts {
		out[i] = parts[i].file
	}
	return out, names
}

// logPart is the log of a file, and the place in it.
type logPart struct {
	log  int
	part int64
}

func (s *Set) partOf(f *File) logPart {
	name, n := cmp.Or(f.Log, f.Path), f.Part
	log, ok := s.logs[name]
	if !ok {
		log = len(s.spells)
		s.logs[name] = log
		s.spells = append(s.spells, 0)
	}
	return logPart{log, n}
}

// before reports whether a line precedes another one of the same log.
func (s *Set) before(a, b place) bool {
	if a.file == b.file {
		return a.line < b.line
	}
	x, y := s.parts[a.file], s.parts[b.file]
	return x.log == y.log && x.part < y.part
}
