package torchtracereceiver

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

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
	slices.SortStableFunc(l.files, rd.readingOrder())
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

// readingOrder sorts by job, rank as named, and name, so that rank 10 comes
// behind rank 9; a file without a rank in its name comes last.
func (rd *reader) readingOrder() func(a, b kineto.File) int {
	rank := func(f kineto.File) int64 {
		if r, ok := rd.rankOfName(f.Path); ok {
			return r
		}
		return math.MaxInt64
	}
	return func(a, b kineto.File) int {
		return cmp.Or(
			cmp.Compare(rd.jobOf(a.Path), rd.jobOf(b.Path)),
			cmp.Compare(rank(a), rank(b)),
			cmp.Compare(a.Path, b.Path),
		)
	}
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

// jobOf names the job of a file as far as can be told without reading it: all
// are one job where the configuration or the environment names it, else those of
// one folder are.
func (rd *reader) jobOf(path string) string {
	if rd.options.JobID != "" {
		return rd.options.JobID
	}
	if id := os.Getenv(kineto.EnvJobID); id != "" {
		return id
	}
	return filepath.Dir(path)
}

// rankOfName returns the rank that a file's name states, as internal/kineto
// reads it: the first group that matched, of the last match of the pattern.
func (rd *reader) rankOfName(path string) (int64, bool) {
	matches := rd.options.RankPattern.FindAllStringSubmatch(filepath.Base(path), -1)
	for _, match := range slices.Backward(matches) {
		for _, group := range match[1:] {
			rank, err := strconv.ParseInt(group, 10, 64)
			if err == nil && rank >= 0 {
				return rank, true
			}
		}
	}
	return 0, false
}
