// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/sniff"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/regular"
)

// input is one file to analyse.
type input struct {
	path   string
	size   int64
	format sniff.Format
}

// inputs are the files that the paths name, each once.
type inputs struct {
	files    []input
	seen     map[string]bool
	skipped  int    // files in directories that are of no known format
	other    string // what reads the first of those for which something does
	strange  []strangeFile
	plain    []strangeFile // texts that may belong to logs
	without  []folder      // in which no known format was found
	problems *problems
}

// maxFiles bounds the files of one call: twice the ranks that the engine takes.
const maxFiles = 1 << 16

// discover finds the files under paths and tells their format.
func discover(paths []string, p *problems) *inputs {
	in := &inputs{seen: map[string]bool{}, problems: p}
	for _, path := range paths {
		in.addPath(path)
	}
	in.companions()
	in.damagedDumps()
	in.passPlain()
	in.tellWithout()
	return in
}

func (in *inputs) addPath(path string) {
	if path == "" {
		in.problems.add(`""`, -1, errors.New("find path: got an empty path; want a file, a folder or a pattern"))
		return
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		in.addDir(path)
	case err == nil:
		in.addFile(path, info, true)
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?["):
		in.addGlob(path)
	default:
		in.problems.add(path, -1, fmt.Errorf("find path: %w", bare(err)))
	}
}

// bare drops the path of a file error: the problem names the file already.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func (in *inputs) addGlob(pattern string) {
	matches, err := filepath.Glob(pattern)
	switch {
	case errors.Is(err, filepath.ErrBadPattern):
		err = errors.New(`got a [ without its ], or a \ at the end; want a path, or a pattern of *, ? and [a-z]`)
	case err == nil && len(matches) == 0:
		err = errors.New("got no match; want at least one file")
	}
	if err != nil {
		in.problems.add(pattern, -1, fmt.Errorf("match pattern: %w", err))
	}
	for _, m := range matches {
		in.addPath(m)
	}
}

func (in *inputs) addDir(dir string) {
	before := len(in.files)
	in.other = ""
	// With the separator a link to a directory is followed.
	err := filepath.WalkDir(dir+string(filepath.Separator), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			in.problems.add(path, -1, fmt.Errorf("read directory: %w", bare(err)))
			return nil
		}
		if d.IsDir() {
			in.folderAsDump(dir, path)
			return nil
		}
		if strings.HasSuffix(path, ".parquet.tmp") { // an exporter writes it right now
			in.skipped++
			return nil
		}
		info, err := os.Stat(path)
		switch {
		case err != nil && namedAsDump(path):
			in.strange = append(in.strange, strangeFile{input: input{path: path}, err: err})
		case err != nil:
			in.problems.add(path, -1, fmt.Errorf("find file: %w", bare(err)))
		case info.Mode().IsRegular() || !info.IsDir() && namedAsDump(path):
			in.addFile(path, info, false)
		}
		return nil
	})
	if err != nil {
		in.problems.add(dir, -1, fmt.Errorf("read directory: %w", bare(err)))
	}
	if len(in.files) == before {
		in.without = append(in.without, folder{dir, in.other})
	}
}

// folder is a directory, and what reads what was found there.
type folder struct{ path, other string }

// tellWithout tells of directories of which nothing is read and nothing was told.
func (in *inputs) tellWithout() {
	for _, dir := range in.without {
		if !in.below(dir.path) && in.problems.in(dir.path) == 0 {
			in.problems.add(dir.path, -1, orElse(fmt.Errorf("read directory: got no trace, dump or log that is read here; want %s", sniff.Accepted), dir.other))
		}
	}
}

// addFile takes a file of a known format. In a directory others are passed
// over, since READMEs lie beside traces; but not those that by their name
// should be a trace and are damaged.
func (in *inputs) addFile(path string, info fs.FileInfo, named bool) {
	if in.seen[filepath.Clean(path)] {
		return
	}
	if len(in.files) >= maxFiles {
		in.problems.add(path, -1, fmt.Errorf("take file: got more than %d files; want at most that", maxFiles))
		return
	}
	in.seen[filepath.Clean(path)] = true
	f, err := tellFormat(path, info.Mode())
	switch {
	case f != sniff.Unknown:
		in.files = append(in.files, input{path: path, size: info.Size(), format: f})
	case namedAsDump(path) && !plainLog(path):
		in.strange = append(in.strange, strangeFile{input: input{path: path, size: info.Size()}, named: named, err: err})
	case len(in.plain) < maxFiles && plainLog(path):
		in.plain = append(in.plain, strangeFile{input: input{path: path, size: info.Size()}, named: named, err: err})
	default:
		in.pass(path, info, named, err)
	}
}

// pass tells of a file of no known format, or passes it over in silence.
func (in *inputs) pass(path string, info fs.FileInfo, named bool, err error) {
	switch {
	case errors.Is(err, sniff.ErrNoAnswer):
		in.problems.add(path, -1, fmt.Errorf("tell format: %w", err))
	case !info.Mode().IsRegular() && (named || filepath.Ext(path) != ".pipe"): // PyTorch reads such pipes, and leaves them
		in.problems.add(path, -1, fmt.Errorf("tell format: %w", err))
	case named && !tracelike(path) && info.Mode().IsRegular() && info.Size() > 0 && sniff.IsText(path):
		in.problems.add(path, -1, orElse(fmt.Errorf("tell format: got text without lines of PyTorch's watchdog; want %s; a log without such lines is read together with one that has them", sniff.Accepted), elsewhere(path, info)))
	case err != nil && (named || tracelike(path)):
		in.problems.add(path, -1, orElse(fmt.Errorf("tell format: %w", bare(err)), elsewhere(path, info)))
	case named:
		in.problems.add(path, -1, orElse(
			fmt.Errorf("tell format: got neither a PyTorch trace nor another file that is read here; want %s", sniff.Accepted), elsewhere(path, info)))
	default:
		in.skipped++
		if in.other == "" {
			in.other = elsewhere(path, info)
		}
	}
}

// orElse adds to an error what would not have failed.
func orElse(err error, other string) error {
	if other == "" {
		return err
	}
	return fmt.Errorf("%w; %s", err, other)
}

func tellFormat(path string, mode fs.FileMode) (sniff.Format, error) {
	if !mode.IsRegular() {
		return sniff.Unknown, fmt.Errorf("got %s; want a regular file", regular.Kind(mode))
	}
	return sniff.File(path)
}

// tracelike reports whether a file's name is one of a trace.
func tracelike(path string) bool {
	name := strings.ToLower(path)
	return slices.ContainsFunc([]string{".json", ".json.gz", ".jsonl", ".jsonl.gz", ".parquet"},
		func(ext string) bool { return strings.HasSuffix(name, ext) })
}

// of returns the paths of one format.
func (in *inputs) of(f sniff.Format) []input {
	var out []input
	for _, i := range in.files {
		if i.format == f {
			out = append(out, i)
		}
	}
	return out
}

func pathsOf(files []input) []string {
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = f.path
	}
	return out
}

func (in *inputs) size() (n int64) {
	for _, f := range in.files {
		n += f.size
	}
	return n
}

// maxProblems bounds the problems that are listed; the rest are counted. 1,000
// are one for each file of a large job, and some 200 KB.
const maxProblems = 1000

// problems collects what could not be read.
type problems struct {
	list    []model.Problem
	omitted int64
	refused int64 // inputs that were not read, or not to their end
}

func (p *problems) add(file string, offset int64, err error) {
	p.put(model.Problem{File: file, Offset: offset, What: err.Error()})
}

// put adds a problem. One of a file says that something of it was refused.
func (p *problems) put(pr model.Problem) {
	if pr.File != "" {
		p.refused++
	}
	p.note(pr)
}

// note adds a problem that costs nothing of the input.
func (p *problems) note(pr model.Problem) {
	if len(p.list) >= maxProblems {
		p.omitted++
		return
	}
	p.list = append(p.list, pr)
}

// in counts the problems of files under dir.
func (p *problems) in(dir string) (n int) {
	prefix := filepath.Clean(dir) + string(filepath.Separator)
	for i := range p.list {
		if strings.HasPrefix(filepath.Clean(p.list[i].File), prefix) {
			n++
		}
	}
	return n
}
