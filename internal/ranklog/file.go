// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

// logExtensions are those of logs.
var logExtensions = []string{".gz", ".log", ".out", ".err", ".stderr", ".stdout", ".txt"}

// stem is a path without the extensions of logs.
func stem(path string) string {
	for {
		ext := strings.ToLower(filepath.Ext(path))
		found := false
		for _, e := range logExtensions {
			found = found || ext == e
		}
		if !found || ext == filepath.Base(path) {
			return path
		}
		path = path[:len(path)-len(ext)]
	}
}

// FileOf finds the rank in the name of a log: "rank3_stderr.log", "worker-3.log", else in that of
// its folder, as torchrun names it: "attempt_0/3/stderr.log", or "rank_3/log.txt". Whether a number that is not called a
// rank is one, the lines decide.
func FileOf(path string) File { return Names{path: true}.File(path) }

// rankIn finds the rank in the name of a log that is no older part.
func rankIn(path string) File {
	f := File{Path: path, Rank: -1}
	if rank, prefix, ok := flightrecorder.RankOf(stem(path)); ok {
		f.Rank = rank
		f.Certain = strings.HasSuffix(strings.TrimRight(strings.ToLower(prefix), "_-"), "rank")
		return f
	}
	if n, name, ok := FolderRank(filepath.Base(filepath.Dir(path))); ok {
		f.Rank, f.Certain = n, strings.HasSuffix(name, "rank")
	}
	return f
}

// folderOfRank is the name of a folder of one rank: "3", "rank_3", "global-rank3", "worker-3". Ranks of nodes and those
// within a node are others.
var folderOfRank = regexp.MustCompile(`(?i)^((?:global[_-]?)?rank|worker|)[_.-]?(\d{1,7})$`)

// FolderRank finds the rank in the name of a folder, and what it is called there, in lower case; empty: the name is a number.
func FolderRank(folder string) (rank int64, called string, ok bool) {
	m := folderOfRank.FindStringSubmatch(folder)
	if m == nil {
		return -1, "", false
	}
	rank, err := strconv.ParseInt(m[2], 10, 64)
	return rank, strings.ToLower(m[1]), err == nil && rank <= maxRank
}

// Attempt is the number of the attempt by torchrun's folders, and the path of that folder in
// front of it; ok is false where they have none.
func Attempt(path string) (dir string, attempt int64, ok bool) {
	for d := filepath.Dir(path); ; d = filepath.Dir(d) {
		if n, found := strings.CutPrefix(filepath.Base(d), "attempt_"); found {
			attempt, err := strconv.ParseInt(n, 10, 64)
			return filepath.Dir(d), attempt, err == nil
		}
		if d == filepath.Dir(d) {
			return "", 0, false
		}
	}
}

// errFound ends a search.
var errFound = errors.New("found")

// Sniff reports whether a log has lines of the watchdog, of the heartbeat monitor or torchrun's
// error summary. What can be read of a damaged log counts.
func Sniff(r io.Reader) bool {
	return search(r, func(line []byte) bool {
		return parse(line).noted || alarm(line) || stated(line) || bytes.Contains(line, []byte(watchdogEnd)) || startsMessage(line) || bytes.Contains(line, markRoot) || bytes.Contains(line, markMPI)
	})
}

// startsMessage reports whether a line has the beginning of a message that a terminal wrapped: words about messages
// have no rank and no exception in front.
func startsMessage(line []byte) bool {
	return opensText(line) && containsAny(line, [][]byte{markRank, []byte("Error: ")})
}

// stated reports whether a line is a statement of a rank on others.
func stated(line []byte) bool {
	_, ok := statementOf(line)
	return ok
}

// SniffLauncher reports whether a log has a line by which a launcher ends the ranks that are left.
func SniffLauncher(r io.Reader) bool { return search(r, closes) }

func search(r io.Reader, is func(line []byte) bool) bool {
	s := &searching{r: r}
	_, _ = eachText(Decode(s), func(_ int64, _ string, line []byte) {
		if !s.found {
			line = text(line)
			s.found = is(line)
		}
	})
	return s.found
}

// searching reads until something is found.
type searching struct {
	r     io.Reader
	found bool
}

func (s *searching) Read(p []byte) (int, error) {
	if s.found {
		return 0, errFound
	}
	return s.r.Read(p)
}
