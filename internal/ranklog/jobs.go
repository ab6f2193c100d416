// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Job is a job, and its logs.
type Job struct {
	Name  string
	Files []File
}

// maxJobs bounds the jobs that logs are parted into.
const maxJobs = 64

// Several reports whether the logs are of more than one job: two processes claim one rank, or their
// lines name two jobs.
func (s *Set) Several() bool { return !s.one(s.all()) }

// First is the path of the first log; empty: there is none.
func (s *Set) First() string {
	if len(s.files) == 0 {
		return ""
	}
	return s.files[0].Path
}

func (s *Set) all() []int {
	all := make([]int, len(s.files))
	for i := range all {
		all[i] = i
	}
	return all
}

// one reports whether files may be of one job.
func (s *Set) one(files []int) bool {
	holders := map[int64][]int{} // by rank: files that claim it
	var stating []int
	for _, i := range files {
		c := &s.claims[i]
		if c.mixed() {
			return false
		}
		for rank := range c.of {
			holders[rank] = append(holders[rank], i)
		}
		if len(c.job) > 0 {
			stating = append(stating, i)
		}
	}
	for rank, list := range holders {
		for k := 1; k < len(list); k++ {
			if s.apart(rank, list[k-1], list[k]) || s.apart(rank, list[0], list[k]) {
				return false
			}
		}
	}
	for k := 1; k < len(stating); k++ {
		if now := &s.claims[stating[k]]; now.contradicts(&s.claims[stating[k-1]]) || now.contradicts(&s.claims[stating[0]]) {
			return false
		}
	}
	return !s.missed(files, holders)
}

// patternAt is the pattern of a file.
func (s *Set) patternAt(file int) (pattern, int64) {
	for i := len(s.patterns); i < len(s.files); i++ {
		p, rank := patternOf(s.files[i].Path)
		s.patterns = append(s.patterns, patterned{p, rank})
	}
	return s.patterns[file].pattern, s.patterns[file].rank
}

// patterned is a pattern, and the number in its place.
type patterned struct {
	pattern
	rank int64
}

// apart reports whether two files claim a rank for different processes. Names that differ in the
// stream or the rotation alone are of one process, or of one after the other.
func (s *Set) apart(rank int64, a, b int) bool {
	if a == b {
		return false
	}
	before, n := s.patternAt(a)
	if now, m := s.patternAt(b); before == now && n == m {
		return false
	}
	for _, x := range s.claims[a].of[rank] {
		for _, y := range s.claims[b].of[rank] {
			if !x.apart(y) {
				return false
			}
		}
	}
	return true
}

// missed reports whether a file has no line of the watchdog, although others of its pattern have,
// and the file of that rank of another pattern has: that is another process.
func (s *Set) missed(files []int, holders map[int64][]int) bool {
	ranked := map[pattern]bool{} // its numbers are ranks
	for _, i := range files {
		p, n := s.patternAt(i)
		for rank := range s.claims[i].of {
			if is, known := ranked[p]; is || !known {
				ranked[p] = n >= 0 && rank == n
			}
		}
	}
	silent := map[pattern]map[int64]int{}
	spoken := map[pattern]map[int64]bool{}
	for _, i := range files {
		p, n := s.patternAt(i)
		switch {
		case !ranked[p]:
		case s.claims[i].waiting:
			if spoken[p] == nil {
				spoken[p] = map[int64]bool{}
			}
			spoken[p][n] = true
		default:
			if silent[p] == nil {
				silent[p] = map[int64]int{}
			}
			silent[p][n] = i
		}
	}
	for p, ranks := range silent {
		for rank := range ranks {
			if spoken[p][rank] { // another stream
				continue
			}
			if slices.ContainsFunc(holders[rank], func(k int) bool { other, _ := s.patternAt(k); return other != p && ranked[other] }) {
				return true
			}
		}
	}
	return false
}

// errJobs says that logs of several jobs cannot be told apart.
var errJobs = errors.New("got logs of several jobs, and neither names nor folders part them; want the logs of one job: name their files, or --job where they are of one")

// Jobs parts the files of several jobs, by the coarsest key by which each part may be of one job and no
// two may be of the same: folders, then names. Strays are files that no name gives to a job. An error
// says that the jobs cannot be told apart.
func (s *Set) Jobs() (jobs []Job, strays []string, err error) {
	root := s.root()
	for _, k := range s.keys(root) {
		parts := map[string][]int{}
		for i := range s.files {
			key := k.of(i)
			parts[key] = append(parts[key], i)
		}
		claiming := s.claiming(parts)
		if len(claiming) < 2 || len(claiming) > maxJobs || !s.separate(parts, claiming) {
			continue
		}
		return s.named(root, k, parts, claiming)
	}
	return nil, nil, fmt.Errorf("part jobs: %w%s", errJobs, s.contested())
}

// claiming lists the parts with lines of the watchdog, or that name a job.
func (s *Set) claiming(parts map[string][]int) (out []string) {
	for key, files := range parts {
		if slices.ContainsFunc(files, func(i int) bool {
			c := &s.claims[i]
			return c.waiting || len(c.job) > 0
		}) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// separate reports whether each part may be of one job, and no two may be of the same.
func (s *Set) separate(parts map[string][]int, keys []string) bool {
	for i, a := range keys {
		if !s.one(parts[a]) {
			return false
		}
		for _, b := range keys[:i] {
			if s.one(slices.Concat(parts[a], parts[b])) {
				return false
			}
		}
	}
	return true
}

// key is a way to part files. folder: its values are names of folders.
type key struct {
	of     func(file int) string
	folder bool
}

// keys lists the ways to part files, the coarsest first.
func (s *Set) keys(root string) (out []key) {
	folders := make([][]string, len(s.files))
	deepest := 0
	for i, f := range s.files {
		if rel, err := filepath.Rel(root, filepath.Dir(filepath.Clean(f.Path))); err == nil && rel != "." {
			folders[i] = strings.Split(filepath.ToSlash(rel), "/")
		}
		deepest = max(deepest, len(folders[i]))
	}
	const most = 16 // levels of folders
	for n := 1; n <= min(deepest, most); n++ {
		upTo := func(i int) string { return strings.Join(folders[i][:min(n, len(folders[i]))], "/") }
		alone := func(i int) string {
			if n > len(folders[i]) {
				return ""
			}
			return folders[i][n-1]
		}
		out = append(out, key{upTo, true}, key{alone, true})
	}
	for _, digits := range []bool{false, true} {
		for _, withFolder := range []bool{false, true} {
			out = append(out, key{func(i int) string {
				p, _ := s.patternAt(i)
				if withFolder {
					return p.dir + "/" + p.whole(digits)
				}
				return p.whole(digits)
			}, false})
		}
	}
	return append(out, key{func(i int) string {
		return filepath.Join(filepath.Dir(s.files[i].Path), plainName(filepath.Base(s.files[i].Path)))
	}, false})
}

// root is the folder that all files lie below.
func (s *Set) root() string {
	root := ""
	for i, f := range s.files {
		dir := filepath.Dir(filepath.Clean(f.Path))
		if i == 0 {
			root = dir
		}
		for root != dir && !strings.HasPrefix(dir, strings.TrimSuffix(root, string(filepath.Separator))+string(filepath.Separator)) && root != filepath.Dir(root) {
			root = filepath.Dir(root)
		}
	}
	return root
}

// named makes jobs of parts. A file of no part goes to the one job with which its name begins.
func (s *Set) named(root string, k key, parts map[string][]int, claiming []string) (jobs []Job, strays []string, err error) {
	labels := make([]string, len(claiming))
	for n, part := range claiming {
		labels[n] = s.labelOf(k, part, parts[part])
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(labels))); len(distinct) < len(labels) {
		for n, part := range claiming {
			labels[n] = plainName(filepath.Base(s.files[parts[part][0]].Path))
		}
	}
	for n, part := range claiming {
		name := labels[n]
		if !k.folder {
			name = filepath.Base(root) + "/" + name
		}
		job := Job{Name: name}
		for _, i := range parts[part] {
			job.Files = append(job.Files, s.files[i])
		}
		jobs = append(jobs, job)
	}
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		if slices.Contains(claiming, part) {
			continue
		}
		for _, i := range parts[part] {
			if n := owner(labels, filepath.Base(s.files[i].Path)); n >= 0 && !k.folder {
				jobs[n].Files = append(jobs[n].Files, s.files[i])
			} else {
				strays = append(strays, s.files[i].Path)
			}
		}
	}
	for n := range jobs {
		slices.SortFunc(jobs[n].Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	}
	return jobs, strays, nil
}

func (s *Set) labelOf(k key, part string, files []int) string {
	if k.folder {
		return part
	}
	name := filepath.Base(s.files[files[0]].Path)
	if len(files) > 1 || s.files[files[0]].Certain {
		if p, _ := s.patternAt(files[0]); p.label() != "" {
			return p.label()
		}
	}
	return plainName(name)
}

// owner finds the one label with which a name begins; -1: none, or several.
func owner(labels []string, name string) int {
	found := -1
	for n, label := range labels {
		rest, ok := strings.CutPrefix(name, label)
		if !ok || rest == "" || strings.IndexByte("_-.", rest[0]) < 0 {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = n
	}
	return found
}

// contested names two files that claim one rank, for a refusal.
func (s *Set) contested() string {
	holders := map[int64][]int{}
	for i := range s.files {
		for rank := range s.claims[i].of {
			holders[rank] = append(holders[rank], i)
		}
	}
	for _, rank := range slices.Sorted(maps.Keys(holders)) {
		for _, i := range holders[rank] {
			if first := holders[rank][0]; s.apart(rank, first, i) {
				return fmt.Sprintf(" (%s and %s have rank %d of different processes)", s.files[first].Path, s.files[i].Path, rank)
			}
		}
	}
	return ""
}
