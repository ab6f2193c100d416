// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/health"
)

// logSuffix is what Inspector ends the names of its files with.
const logSuffix = ".log"

// listing is what one look at the configured paths found.
type listing struct {
	files      []found
	ignored    int      // beyond max_files
	nothing    []string // what stands for no file
	unreadable health.List

	irregular     []string // what is named as a log and is no file
	moreIrregular int
}

// maxIrregular bounds what is remembered of those.
const maxIrregular = 1024

type found struct {
	path string
	info os.FileInfo // nil for what is no regular file, or a link that leads nowhere
}

// list finds the files: those that are named, match a glob, or lie in a folder that
// does and are named as Inspector does it. Links are followed: folders of nodes are
// often links into a shared file system.
func (c *Config) list() listing {
	var l listing
	seen := map[string]bool{}
	for _, entry := range c.Include {
		n := 0
		l.unreadable.Add(health.Readable(entry))
		for _, path := range matches(entry) {
			for _, f := range l.expand(path) {
				if f.info != nil {
					n++
				}
				if !seen[f.path] && !c.excludes(f.path) {
					seen[f.path] = true
					l.add(f)
				}
			}
		}
		if n == 0 {
			l.nothing = append(l.nothing, entry)
		}
	}
	slices.SortFunc(l.files, func(a, b found) int { return strings.Compare(a.path, b.path) })
	if over := len(l.files) - c.MaxFiles; over > 0 {
		l.ignored, l.files = over, l.files[:c.MaxFiles]
	}
	return l
}

func (l *listing) add(f found) {
	switch {
	case f.info != nil:
		l.files = append(l.files, f)
	case len(l.irregular) < maxIrregular:
		l.irregular = append(l.irregular, f.path)
	default:
		l.moreIrregular++
	}
}

// matches returns the paths that an entry stands for. A file may have a name that
// looks like a glob.
func matches(entry string) []string {
	if _, err := os.Stat(entry); err == nil {
		return []string{filepath.Clean(entry)}
	}
	paths, err := filepath.Glob(entry)
	if err != nil {
		return nil
	}
	return paths
}

// expand returns a file, or the logs in a folder.
func (l *listing) expand(path string) []found {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return lookAt(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		l.unreadable.Add(health.Explain(path, err))
		return nil
	}
	var out []found
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), logSuffix) {
			out = append(out, lookAt(filepath.Join(path, e.Name()))...)
		}
	}
	return out
}

// lookAt returns what a path leads to; nothing where it is gone by now.
func lookAt(path string) []found {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() {
		return []found{{path, info}}
	}
	if _, err = os.Lstat(path); err != nil {
		return nil
	}
	return []found{{path: path}}
}

// passedOver is what the last look found that is no regular file.
type passedOver struct {
	paths map[string]bool
	more  int
}

// tellPassedOver counts what is named as a log and is no regular file, and tells of it,
// once for as long as it is there.
func (rd *reader) tellPassedOver(l *listing) {
	was := rd.passed
	rd.passed = passedOver{paths: make(map[string]bool, len(l.irregular)), more: l.moreIrregular}
	var fresh []string
	for _, path := range l.irregular {
		rd.passed.paths[path] = true
		if !was.paths[path] {
			fresh = append(fresh, path)
		}
	}
	n := len(fresh) + max(0, l.moreIrregular-was.more)
	if n == 0 {
		return
	}
	rd.odd("not_regular", int64(n))
	rd.log.Warn(fmt.Sprintf("Not read, since no regular file: %d paths", n), zap.Strings("first", fresh[:min(len(fresh), toldEach)]))
}

// excludes reports whether a glob of exclude matches the path: the whole of it
// where the glob holds a separator, else its last element.
func (c *Config) excludes(path string) bool {
	return slices.ContainsFunc(c.Exclude, func(glob string) bool {
		name := filepath.Base(path)
		if strings.ContainsRune(glob, filepath.Separator) {
			name, glob = filepath.Clean(path), filepath.Clean(glob)
		}
		ok, err := filepath.Match(glob, name)
		return err == nil && ok
	})
}
