// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/intake"
	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// listing is what one look at the configured paths found.
type listing struct {
	files    []kineto.File
	problems []model.Problem
	ignored  int // files beyond max_files
}

// list finds the files to read, in the order in which they are read.
func (rd *reader) list() listing {
	var l listing
	l.files, l.problems = kineto.Discover(rd.cfg.Include, rd.options)
	l.files = slices.DeleteFunc(l.files, func(f kineto.File) bool { return rd.cfg.excludes(f.Path) })
	intake.Sort(l.files, rd.options, func(f kineto.File) string { return f.Path })
	if over := len(l.files) - rd.cfg.MaxFiles; over > 0 {
		l.ignored = over
		l.files = l.files[:rd.cfg.MaxFiles]
		l.problems = append(l.problems, model.Problem{
			File:   l.files[len(l.files)-1].Path,
			Offset: -1,
			What:   fmt.Sprintf("list files: got %d; want at most %d (max_files), those behind this one are not read", over+rd.cfg.MaxFiles, rd.cfg.MaxFiles),
		})
	}
	return l
}

func (l *listing) paths() []string {
	out := make([]string, len(l.files))
	for i, f := range l.files {
		out[i] = f.Path
	}
	return out
}

// nothing is the error of an input without a file.
func (l *listing) nothing(include []string) error {
	if len(l.problems) == 0 {
		return fmt.Errorf("find traces: got no file for include %q; want at least one", include)
	}
	return fmt.Errorf("find traces: got no file for include %q; want at least one: %s", include, describe(&l.problems[0]))
}

// describe renders a problem as one line.
func describe(p *model.Problem) string {
	text := p.What
	if p.Offset >= 0 {
		text = fmt.Sprintf("offset %d: %s", p.Offset, text)
	}
	if p.File != "" {
		text = p.File + ": " + text
	}
	return text
}

// excludes reports whether a glob of exclude matches the path: the whole of it
// where the glob holds a separator, else its last element.
func (c *Config) excludes(path string) bool {
	return slices.ContainsFunc(c.Exclude, func(glob string) bool {
		name := filepath.Base(path)
		if strings.ContainsRune(glob, filepath.Separator) {
			name = filepath.Clean(path)
			glob = filepath.Clean(glob)
		}
		ok, err := filepath.Match(glob, name)
		return err == nil && ok
	})
}
