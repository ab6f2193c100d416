// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// partName is the end of the name of an older part of a log: "rank_0.log.1", "rank_0.log.2.gz",
// "rank_0.log-20261120".
var partName = regexp.MustCompile(`(?i)\.(?:log|out|err|txt|stderr|stdout)(?:(\.\d{1,3})|[-.](20\d{2}-?\d{2}-?\d{2}))(?:\.gz)?$`)

// PartOf returns the path of the log of which a file is a part, and the place of the part: the older,
// the less. The log itself is the last, 0.
func PartOf(path string) (log string, part int64) {
	name := filepath.Base(path)
	m := partName.FindStringSubmatchIndex(name)
	if m == nil {
		return path, 0
	}
	if m[2] >= 0 {
		n, _ := strconv.ParseInt(name[m[2]+1:m[3]], 10, 64) // at most 3 digits
		return path[:len(path)-len(name)+m[2]], -n
	}
	date := make([]byte, 0, len("20261120"))
	for _, c := range name[m[4]:m[5]] {
		if c != '-' {
			date = append(date, byte(c))
		}
	}
	n, _ := strconv.ParseInt(string(date), 10, 64) // 8 digits
	const past = 1_000_000_000                     // above all dates
	return path[:len(path)-len(name)+m[4]-1], n - past
}

// InOrder sorts parts of one log from the oldest to the latest, and leaves the logs in their order.
func InOrder[T any](files []T, path func(T) string) []T {
	type part struct {
		first int
		n     int64
		file  T
	}
	first := map[string]int{}
	parts := make([]part, len(files))
	for i, f := range files {
		log, n := PartOf(path(f))
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
	return out
}

// logPart is the log of a file, and the place in it.
type logPart struct {
	log  int
	part int64
}

func (s *Set) partOf(path string) logPart {
	name, n := PartOf(path)
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
