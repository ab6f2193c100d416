// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// exit is a rank in the error summary of torchrun, or in a line of mpirun or srun.
type exit struct {
	rank   int64 // -1: not read yet
	code   int64
	host   string
	text   string
	root   bool   // the first failure that was observed
	known  bool   // the code was read
	time   string // as written: the order of texts is that of times
	bare   bool   // nothing but an exit code is known of its end
	at     place
	traced bool // the lines of a traceback follow
	killed bool // srun says so: by whom is not known
}

var (
	markRoot     = []byte("Root Cause (first observed failure)")
	markFailures = []byte("Failures:")
	markMPI      = []byte("noticed that process rank ")
)

// summary reads the error summary of torchrun:
//
//	Root Cause (first observed failure):
//	[0]:
//	  time      : 2026-11-16_10:00:00
//	  host      : node1
//	  rank      : 5 (local_rank: 1)
//	  exitcode  : -9 (pid: 12345)
//	  error_file: <N/A>
//	  traceback : Signal 9 (SIGKILL) received by PID 12345
type summary struct {
	within, root bool
	now          exit
	rest         int // lines that the traceback of the summary may still have
}

// line reads a line; it returns a rank's exit once it is whole, and again once more is known of it.
func (m *summary) line(s []byte, at place) (exit, bool) {
	switch {
	case bytes.Contains(s, markRoot):
		m.within, m.root, m.now = true, true, exit{rank: -1}
		return exit{}, false
	case bytes.Equal(bytes.TrimSpace(s), markFailures):
		m.within, m.root, m.now = true, false, exit{rank: -1}
		return exit{}, false
	case bytes.Contains(s, markMPI):
		return ofMPIExit(s, at)
	case !m.within:
		return exit{}, false
	}
	if bytes.HasPrefix(bytes.TrimSpace(s), []byte("=====")) {
		m.within = m.within && !m.root
		return exit{}, false
	}
	if m.now.traced {
		return m.traceback(s)
	}
	key, value, ok := strings.Cut(string(s[:min(len(s), maxFault)]), ":")
	if !ok {
		return exit{}, false
	}
	value = strings.TrimSpace(value)
	n, _, isNumber := number([]byte(value))
	switch strings.TrimSpace(key) {
	case "time":
		m.now = exit{rank: -1, time: cut(value)}
	case "host":
		m.now.host = cut(value)
	case "rank":
		if isNumber && n >= 0 && n <= maxRank {
			m.now.rank = n
		}
	case "exitcode":
		if isNumber && m.now.rank >= 0 {
			m.now.code, m.now.known, m.now.root, m.now.at = n, true, m.root, at
			m.now.text, m.now.bare = fmt.Sprintf("exit code %d", n), n > 0
			return m.now, true
		}
	case "traceback":
		return m.reason(value)
	}
	return exit{}, false
}

func (m *summary) reason(value string) (exit, bool) {
	if !m.now.known {
		return exit{}, false
	}
	if strings.HasPrefix(value, "Traceback") {
		m.now.traced, m.rest = true, maxTrace
		return exit{}, false
	}
	if strings.HasPrefix(value, "Signal ") {
		m.now.text = fmt.Sprintf("%s (%s)", m.now.text, cut(value))
	}
	return m.now, true
}

// maxTrace bounds the lines of a traceback in a summary.
const maxTrace = 400

// traceback looks for the error that ends it.
func (m *summary) traceback(s []byte) (exit, bool) {
	m.rest--
	text, w := faultOf(bytes.TrimSpace(s), true)
	if w == weightNone {
		m.now.traced = m.rest > 0
		return exit{}, false
	}
	m.now.traced, m.now.bare = false, false
	m.now.text = fmt.Sprintf("exit code %d, %s", m.now.code, text)
	if w == weightResult {
		m.now.root = false // others' ends are why
	}
	return m.now, true
}

// ofMPIExit reads "mpirun noticed that process rank 3 with PID 12 on node n1 exited on signal 9 (Killed).".
func ofMPIExit(s []byte, at place) (exit, bool) {
	rank, ok := after(s, string(markMPI))
	signal, killed := after(s, "exited on signal ")
	if !ok || !killed || rank < 0 || rank > maxRank {
		return exit{}, false
	}
	return exit{rank: rank, code: -signal, text: fmt.Sprintf("ended by signal %d", signal), root: true, known: true, at: at}, true
}

// byOthers are exit codes of ends that others cause, with 128 added where a shell reports them: the watchdog aborts a
// process that waits (signal 6), and persons and launchers end processes (2 and 15).
var byOthers = []int64{-2, -6, -15, 128 + 2, 128 + 6, 128 + 15}

// own reports whether an exit explains itself. What launchers kill afterwards is not the first failure.
func (e *exit) own() bool {
	return e.known && e.root && e.code != 0 && !slices.Contains(byOthers, e.code)
}

// markExits are how launchers report that a rank ended: Lightning's "[rank: 2] Child process with PID 21 terminated with
// code -11.", Composer's "Rank 5 crashed with exit code -9." and "Global rank 5 (PID 12) exited with code 1". Programs
// write other lines of a rank and a code, of requests that failed.
var markExits = []*regexp.Regexp{
	regexp.MustCompile(`\[rank: (\d+)\] Child process with PID \d+ terminated with code (-?\d+)`),
	regexp.MustCompile(`\b[Rr]ank (\d+) (?:crashed|failed|exited|died|terminated) with (?:exit|return) code:? (-?\d+)\.?\s*$`),
	regexp.MustCompile(`\bGlobal rank (\d+) \(PID \d+\) exited with code (-?\d+)`),
}

// maxExit bounds exit codes, and the numbers of signals below 0.
const maxExit = 255

// ofRankExit reads the end of a rank that a launcher reports. What a rank writes itself is no such line.
func ofRankExit(s []byte, at place) (exit, bool) {
	if !bytes.Contains(s, []byte(" with ")) || !bytes.Contains(s, []byte("ank")) || rankMarked.Match(s) {
		return exit{}, false
	}
	for _, mark := range markExits {
		m := mark.FindSubmatch(s)
		if m == nil {
			continue
		}
		rank, _, ok := number(m[1])
		code, _, known := number(m[2])
		if !ok || !known || rank > maxRank || code > maxExit || code < -maxExit {
			return exit{}, false
		}
		end := m[0][bytes.LastIndex(m[0], []byte(" with "))+len(" with "):]
		return exit{rank: rank, code: code, text: cut(string(end)), root: true, known: true, bare: code > 0, at: at}, true
	}
	return exit{}, false
}

// rankMarked is PyTorch's mark of the process that wrote a line.
var rankMarked = regexp.MustCompile(`\[rank\d+\]:`)

// srunEnds are the ends of a task that explain themselves. srun aborts and kills the others
// afterwards.
var srunEnds = []string{"Segmentation fault", "Out Of Memory", "Bus error", "Illegal instruction", "Floating point exception", "Killed"}

// ofSrunExit reads "srun: error: n1: task 2: Out Of Memory". The rank is the task, which counts nodes
// where a launcher runs under srun. first: it explains a hang only where srun ended the others after it.
func ofSrunExit(s []byte, at place) (e exit, first, ok bool) {
	_, rest, found := bytes.Cut(s, []byte("srun: error: "))
	if !found {
		return exit{}, false, false
	}
	_, end, found := bytes.Cut(rest, []byte(": task "))
	task, n, isNumber := number(end)
	if !found || !isNumber || task < 0 || task > maxRank || !bytes.HasPrefix(end[n:], []byte(": ")) {
		return exit{}, false, false
	}
	text := cut(strings.TrimSpace(string(end[n+2:])))
	for _, e := range srunEnds {
		if strings.HasPrefix(text, e) {
			return exit{rank: task, code: -1, text: "srun: " + text, root: true, known: true, at: at, killed: e == "Killed"}, false, true
		}
	}
	if code, ok := after([]byte(text), "Exited with exit code "); ok && code != 0 {
		return exit{rank: task, code: code, text: "srun: " + text, root: true, known: true, bare: true, at: at}, true, true
	}
	return exit{}, false, false
}
