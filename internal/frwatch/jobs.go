// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Jobs tells whose dump a file is. Without a configured id that is said by the folder, as
// long as no rank has two dumps there at a time: then each beginning of names is a job of
// its own.
type Jobs struct {
	// ID names the job of all files; empty: their folder's name does.
	ID string
	// Window is within what time two dumps of one rank contradict each other; one that is
	// older is left over.
	Window time.Duration

	split map[string]bool // folders that hold several jobs
}

// maxSplit bounds the folders that are remembered to hold several jobs.
const maxSplit = 1 << 12

// Learn looks for folders that hold dumps of several jobs, and returns those that are new.
func (j *Jobs) Learn(files []File) (mixed []string) {
	if j.ID != "" {
		return nil
	}
	type place struct {
		dir  string
		rank int64
	}
	seen := map[place][]File{}
	for _, f := range files {
		p := place{filepath.Dir(f.Path), f.Rank}
		for _, o := range seen[p] {
			if o.Prefix != f.Prefix && f.Time.Sub(o.Time).Abs() <= j.Window && !j.split[p.dir] && len(j.split) < maxSplit {
				if j.split == nil {
					j.split = map[string]bool{}
				}
				j.split[p.dir] = true
				mixed = append(mixed, p.dir)
			}
		}
		seen[p] = append(seen[p], f)
	}
	slices.Sort(mixed)
	return mixed
}

// Of returns the id of the job whose dump a file is.
func (j *Jobs) Of(f *File) string {
	if j.ID != "" {
		return j.ID
	}
	dir := filepath.Dir(f.Path)
	name := filepath.Base(dir)
	if abs, err := filepath.Abs(dir); err == nil {
		name = filepath.Base(abs)
	}
	if j.split[dir] {
		if own := strings.Trim(filepath.Base(f.Prefix), "_-. "); own != "" {
			return name + "/" + own
		}
	}
	return name
}
