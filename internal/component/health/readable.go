// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Readable reports the paths that are missing, and the directories that cannot be read. Of a glob
// that is the directory in front of its first wildcard: what matches it may come later.
func Readable(paths ...string) error {
	var all List
	for _, path := range paths {
		all.Add(readable(path))
	}
	return all.Err()
}

func readable(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if fixed := fixedPart(path); fixed != path {
			path = fixed
			info, err = os.Stat(path)
		}
	}
	if err == nil && info.IsDir() {
		err = list(path)
	}
	return Explain(path, err)
}

func list(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // it was only read
	if _, err = d.Readdirnames(1); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// fixedPart is the directory in front of the first wildcard of a glob, or the path itself.
func fixedPart(path string) string {
	i := strings.IndexAny(path, `*?[\`)
	if i < 0 {
		return path
	}
	return filepath.Dir(path[:i] + "x")
}

// Explain returns an error that says of a path that cannot be read what to do about it.
func Explain(path string, err error) error {
	cause := err
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		cause = e.Err // its path is ours
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w; create it, or remove it from the configuration", path, cause)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("read %s: %w; let user %d read it and search the directories above it", path, cause, os.Geteuid())
	}
	return fmt.Errorf("read %s: %w", path, cause)
}
