// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// File is a file that may hold a trace.
type File struct {
	Path string
	Size int64 // bytes on disk
}

// Discover lists the traces that the paths stand for: files, folders (their
// *.json and *.json.gz, not those of folders inside) and globs, by name, each
// once. A path that stands for nothing is a problem.
func Discover(paths []string, _ Options) ([]File, []model.Problem) {
	var files []File
	var problems []model.Problem
	for _, path := range paths {
		found, what := discover(path)
		if what != "" {
			problems = append(problems, model.Problem{File: path, Offset: -1, What: what})
		}
		files = append(files, found...)
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(files, func(a, b File) bool { return a.Path == b.Path }), problems
}

func discover(path string) (files []File, problem string) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return discoverDir(path)
	case err == nil:
		return []File{{filepath.Clean(path), info.Size()}}, ""
	case !errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(path, "*?["):
		return nil, "find traces: " + err.Error()
	}
	matches, err := filepath.Glob(path)
	if err != nil {
		return nil, "find traces: " + err.Error()
	}
	for _, m := range matches {
		if info, err := os.Stat(m); err == nil && info.Mode().IsRegular() {
			files = append(files, File{filepath.Clean(m), info.Size()})
		}
	}
	if len(files) == 0 {
		return nil, "find traces: got no such file; want a file, a folder or a pattern that matches one"
	}
	return files, ""
}

func discoverDir(dir string) (files []File, problem string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, "list folder: " + err.Error()
	}
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		if !strings.HasSuffix(name, ".json") && !strings.HasSuffix(name, ".json.gz") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, File{path, info.Size()})
		}
	}
	if len(files) == 0 {
		return nil, "list folder: got no *.json or *.json.gz; want traces"
	}
	return files, ""
}
