// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/frwatch"
)

func compareText(a, b string) int { return cmp.Compare(a, b) }

// group are the items of one job.
type group struct {
	job   string
	items []*item
	// world is how many ranks it has. guessed: it may have more.
	world   int64
	guessed bool
	refused bool // a size was given that the dumps contradict
}

// jobs tells the dumps of different jobs apart. All are taken for one job's, in however
// many folders they lie, unless two of them are of one rank: then each folder is a job's, or
// several side by side that share no rank, and within a folder each beginning of names.
func (r *run) jobs() []group {
	var with []*item
	seen := map[int64]bool{}
	twins := false
	for i := range r.items {
		it := &r.items[i]
		if !it.named || it.copyOf != "" {
			continue // nobody knows whose it is, or it is there twice
		}
		with = append(with, it)
		twins = twins || seen[it.rank]
		seen[it.rank] = true
	}
	switch {
	case len(with) == 0:
		return nil
	case r.o.Job != "":
		return []group{{job: r.o.Job, items: with}}
	case !twins:
		return []group{{job: commonFolder(with), items: with}}
	}
	split := frwatch.Jobs{Window: r.window(with)}
	var files []frwatch.File
	newest := newestOf(with)
	for _, it := range with {
		files = append(files, it.file(newest))
	}
	split.Learn(files)
	byPlace := map[place]*group{}
	for i, it := range with {
		at := place{filepath.Dir(absolute(it.path)), split.Of(&files[i])}
		if byPlace[at] == nil {
			byPlace[at] = &group{job: at.job}
		}
		byPlace[at].items = append(byPlace[at].items, it)
	}
	for joinNodes(byPlace) {
	}
	dirs := map[string][]string{} // of jobs of one name
	for at := range byPlace {
		dirs[at.job] = append(dirs[at.job], at.dir)
	}
	var out []group
	for at, g := range byPlace {
		g.job = distinctName(at.job, at.dir, dirs[at.job])
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b group) int { return compareText(a.job, b.job) })
	return out
}

// place is a folder, and the name of a job in it.
type place struct{ dir, job string }

// joinNodes makes one job of folders side by side that share no rank, as of nodes, and reports whether
// there were any. Each must be of one job, and their parent have no dumps of its own.
func joinNodes(byPlace map[place]*group) (joined bool) {
	within := map[string][]place{}
	jobs := map[string]int{} // by folder
	for at := range byPlace {
		within[filepath.Dir(at.dir)] = append(within[filepath.Dir(at.dir)], at)
		jobs[at.dir]++
	}
	for parent, nodes := range within {
		if len(nodes) < 2 || jobs[parent] > 0 {
			continue
		}
		slices.SortFunc(nodes, func(a, b place) int { return compareText(a.dir, b.dir) })
		ranks := map[int64]string{} // the folder that has it
		apart := true
		job := &group{job: filepath.Base(parent)}
		for _, at := range nodes {
			for _, it := range byPlace[at].items {
				in, twice := ranks[it.rank]
				apart = apart && jobs[at.dir] == 1 && (!twice || in == at.dir)
				ranks[it.rank] = at.dir
			}
			job.items = append(job.items, byPlace[at].items...)
		}
		if !apart {
			continue
		}
		for _, at := range nodes {
			delete(byPlace, at)
		}
		byPlace[place{parent, job.job}] = job
		joined = true
	}
	return joined
}

// distinctName puts so many folders in front of a job's name as tell its folder from the others whose
// jobs have the same name.
func distinctName(job, dir string, dirs []string) string {
	parts := strings.Split(filepath.ToSlash(dir), "/")
	for n := 1; n < len(parts); n++ {
		end := "/" + strings.Join(parts[len(parts)-n:], "/")
		same := 0
		for _, other := range dirs {
			if strings.HasSuffix(filepath.ToSlash(other), end) {
				same++
			}
		}
		if same < 2 {
			return strings.Join(append(parts[len(parts)-n:len(parts)-1:len(parts)-1], job), "/")
		}
	}
	return strings.Join(append(parts[:len(parts)-1:len(parts)-1], job), "/")
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (it *item) file(newest time.Time) frwatch.File {
	return frwatch.File{
		Path: it.path, Prefix: filepath.Join(filepath.Dir(it.path), it.prefix), Rank: it.rank,
		Size: it.size, Time: it.writtenOr(newest), Regular: true,
	}
}

// writtenOr is when a dump was written, as far as it says that: when its newest operation
// was enqueued. Copies have other times than what they are copies of.
// One without operations says nothing, and is taken for one of the newest.
func (it *item) writtenOr(newest time.Time) time.Time {
	if it.light != nil && it.light.LastEnqueue > 0 {
		return time.Unix(0, it.light.LastEnqueue)
	}
	return newest
}

func newestOf(items []*item) (newest time.Time) {
	for _, it := range items {
		if t := it.writtenOr(newest); t.After(newest) {
			newest = t
		}
	}
	return newest
}

// Whoever waits longer than the operation's timeout is given up: the newest operations of
// two ranks of one incident can not be farther apart, whatever hangs, than one timeout of
// the one and one of the other.
const (
	leastWindow   = 10 * time.Minute // NCCL's default
	unknownWindow = time.Hour        // where no dump says a timeout
)

func (r *run) window(items []*item) time.Duration {
	longest := time.Duration(0)
	for _, it := range items {
		longest = max(longest, it.timeout)
	}
	if longest == 0 {
		return unknownWindow
	}
	return max(2*longest, leastWindow)
}

// commonFolder names the folder that all lie below.
func commonFolder(items []*item) string {
	dir := ""
	for i, it := range items {
		d, err := filepath.Abs(filepath.Dir(it.path))
		if err != nil {
			return ""
		}
		if i == 0 {
			dir = d
		}
		for dir != d && !strings.HasPrefix(d, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator)) {
			dir = filepath.Dir(dir)
		}
	}
	return filepath.Base(dir)
}

func versionsOf(items []*item, of func(*item) string) []string {
	seen := map[string]bool{}
	for _, it := range items {
		if v := of(it); v != "" {
			seen[v] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
