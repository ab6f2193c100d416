// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/ranklog"
)

// randomEnd is what torchrun puts behind the id of a run in the name of its folder.
var randomEnd = regexp.MustCompile(`_[a-z0-9_]{8}$`)

// jobOfLogs names the job of logs: by the id of torchrun's run, by the folder that all of them are in, or by the one
// that was given. Folders of ranks name none.
func jobOfLogs(files []input, given []string) string {
	dirs := map[string]bool{}
	for _, f := range files {
		dirs[filepath.Dir(absolute(f.path))] = true
	}
	if dir, ok := runOf(files); ok {
		id := randomEnd.ReplaceAllString(filepath.Base(dir), "")
		if id != "none" && !strings.HasPrefix(id, "none_") { // torchrun's, where no --rdzv-id was given
			return id
		}
		return filepath.Base(filepath.Dir(dir))
	}
	root := ""
	for dir := range dirs {
		root = commonDir(root, dir)
	}
	if len(dirs) > 1 {
		for _, path := range given {
			if path = absolute(path); isFolder(path) && commonDir(root, path) == path {
				return filepath.Base(path)
			}
		}
	}
	if _, _, ok := ranklog.FolderRank(filepath.Base(root)); ok {
		root = filepath.Dir(root)
	}
	return filepath.Base(root)
}

// runOf is the folder of torchrun's run that all files are of; of several with one id the first.
func runOf(files []input) (run string, ok bool) {
	for _, f := range files {
		dir, _, found := ranklog.Attempt(absolute(f.path))
		switch id := randomEnd.ReplaceAllString(filepath.Base(dir), ""); {
		case !found:
			return "", false
		case run == "":
			run = dir
		case id != randomEnd.ReplaceAllString(filepath.Base(run), ""):
			return "", false
		}
	}
	return run, run != ""
}

// commonDir is the folder that two are in, or that one of them is; the second where the first is empty.
func commonDir(a, b string) string {
	if a == "" {
		return b
	}
	const separator = string(filepath.Separator)
	for a != b && !strings.HasPrefix(b, strings.TrimSuffix(a, separator)+separator) && a != filepath.Dir(a) {
		a = filepath.Dir(a)
	}
	return a
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
