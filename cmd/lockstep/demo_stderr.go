// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-otel/lockstep/internal/report"
)

// workerStderr passes on what workers print, a line at a time, and remembers
// which of them said that it has no ring.
type workerStderr struct {
	mu     sync.Mutex
	w      io.Writer
	rings  bool             // pass on what the plugin says of its ring, too
	noRing map[int64]string // by rank: why
}

func newWorkerStderr(w io.Writer) *workerStderr {
	asked := os.Getenv("LOCKSTEP_DEBUG")
	return &workerStderr{w: w, rings: asked != "" && asked != "0", noRing: map[int64]string{}}
}

// What the plugin says with LOCKSTEP_DEBUG.
const (
	saysRing   = "lockstep: ring: "
	saysNoRing = "lockstep: no ring: "
	saysCUPTI  = "lockstep: CUPTI "
	isActive   = ": active,"
)

// isUsual reports whether a line says that the plugin does what it should.
func isUsual(text string) bool {
	return strings.HasPrefix(text, saysRing) || strings.HasPrefix(text, saysCUPTI) && strings.Contains(text, isActive)
}

func (s *workerStderr) line(rank int, line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.TrimSuffix(string(line), "\n")
	why, none := strings.CutPrefix(text, saysNoRing)
	if none {
		why, _, _ = strings.Cut(why, " (LOCKSTEP_") // which the demo sets itself
		s.noRing[int64(rank)] = printable(why)
	}
	if s.rings || !none && !isUsual(text) {
		_, _ = s.w.Write(line)
	}
}

// of returns where one rank's worker is to write.
func (s *workerStderr) of(rank int) io.Writer { return &rankStderr{all: s, rank: rank} }

// rankStderr makes lines of what one worker prints. Only the goroutine that
// copies the worker's output writes to it.
type rankStderr struct {
	all  *workerStderr
	rank int
	rest []byte // of a line that has not ended
}

// maxStderrLine bounds a line; a longer one is passed on in parts.
const maxStderrLine = 4096

// Write implements io.Writer.
func (r *rankStderr) Write(p []byte) (int, error) {
	r.rest = append(r.rest, p...)
	for {
		end := bytes.IndexByte(r.rest, '\n') + 1
		if end == 0 && len(r.rest) >= maxStderrLine {
			end = maxStderrLine
		}
		if end == 0 {
			return len(p), nil
		}
		r.all.line(r.rank, r.rest[:end])
		r.rest = r.rest[end:]
	}
}

// flush passes on a last line without an end.
func (r *rankStderr) flush() {
	if len(r.rest) > 0 {
		r.all.line(r.rank, append(r.rest, '\n'))
		r.rest = nil
	}
}

// unseen says which of the ranks could not be watched, and why as far as that is
// known; empty where all were. seen is of how many ranks anything was read.
func (s *workerStderr) unseen(ranks, seen int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.noRing); n > 0 {
		who := slices.Sorted(maps.Keys(s.noRing))
		return fmt.Sprintf("%d of %s made no ring (%s): %s", n, counted(int64(ranks), "rank"), report.Ranks(who), s.noRing[who[0]])
	}
	if seen < ranks {
		return fmt.Sprintf("of %d of %s nothing was read, and why is not known; with LOCKSTEP_DEBUG=1 each worker says where its ring is",
			ranks-seen, counted(int64(ranks), "rank"))
	}
	return ""
}
