package ncclinspectorreceiver

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// logSuffix is what Inspector ends the names of its files with.
const logSuffix = ".log"

// listing is what one look at the configured paths found.
type listing struct {
	files   []found
	ignored int      // beyond max_files
	nothing []string // what stands for no file
}

type found struct {
	path string
	info os.FileInfo
}

// list finds the files: those that are named, match a glob, or lie in a folder that
// does and are named as Inspector does it. Links are followed: folders of nodes are
// often links into a shared file system.
func (c *Config) list() listing {
	var l listing
	seen := map[string]bool{}
	for _, entry := range c.Include {
		n := 0
		for _, path := range matches(entry) {
			for _, f := range expand(path) {
				n++
				if !seen[f.path] && !c.excludes(f.path) {
					seen[f.path] = true
					l.files = append(l.files, f)
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
func expand(path string) []found {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil
	case info.Mode().IsRegular():
		return []found{{path, info}}
	case !info.IsDir():
		return nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil
	}
	var out []found
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), logSuffix) {
			continue
		}
		name := filepath.Join(path, e.Name())
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			out = append(out, found{name, info})
		}
	}
	return out
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
