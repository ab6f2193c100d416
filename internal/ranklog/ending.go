// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"slices"
	"strings"
)

// continues are words of a line that reports that the process continues after an error.
var continues = []string{"retry", "trying", "skip", "fall", "fell", "using", "ignor", "continu", "instead", "recover", "resum"}

// endWords are words of a line about an error or an end.
var endWords = []string{
	"error", "exception", "traceback", "fatal", "assert", "fail", "abort", "kill", "terminat", "signal", "exit", "shut", "clos", "destroy", "clean", "leak", "dump", "crash", "finaliz", "cancel", "interrupt",
}

// reports are beginnings of lines of launchers and of reports of an end.
var reports = []string{
	"srun: ", "slurmstepd: ", "mpirun", "prterun", "wandb:", "Extension modules: ", "Python runtime state", "Root Cause", "frame #", "Thread 0x", "Current thread 0x",
}

// aside returns the weight that the error of the traceback behind this line has at most, since it did
// not end the process: of a destructor, of a thread, of a task. weightNone: any.
func aside(line []byte) weight {
	switch {
	case !bytes.Contains(line, []byte("xception ")):
		return weightNone
	case bytes.Contains(line, []byte("Exception ignored in")):
		return weightResult
	case bytes.Contains(line, []byte("Exception in thread ")), bytes.Contains(line, []byte("exception was never retrieved")):
		return weightUnclear
	}
	return weightNone
}

// lineKind is what a line behind an error shows about its process.
type lineKind int

const (
	lineOrdinary lineKind = iota // it runs, and caught the error
	lineOfEnd                    // it is about an error or an end
	lineOfStack                  // of a traceback, of stacks, of a launcher or a library
)

// kindOfLine returns the kind of a line. Progress bars are judged apart.
func kindOfLine(line []byte) lineKind {
	s := string(bytes.TrimRight(line[:min(len(line), maxFault)], " \t"))
	switch {
	case s == "", s[0] == ' ' || s[0] == '\t', isFrame(s), isLibrary(s):
		return lineOfStack
	case spokenOf(s, continues):
		return lineOrdinary
	}
	hasWord := false
	for word := range words(s) {
		hasWord = true
		for _, e := range endWords {
			if strings.HasPrefix(word, e) {
				return lineOfEnd
			}
		}
		if strings.HasSuffix(word, "error") || strings.HasSuffix(word, "exception") {
			return lineOfEnd
		}
	}
	switch {
	case !hasWord:
		return lineOfStack
	case advises(s):
		return lineOfEnd
	}
	return lineOrdinary
}

// isFrame reports whether a line is of a stack: it has an address, or draws a box around the stack.
func isFrame(s string) bool {
	if i := strings.Index(s, "0x"); i >= 0 && i+2 < len(s) && strings.IndexByte("0123456789abcdef", s[i+2]) >= 0 {
		return true
	}
	return strings.HasPrefix(s, "\xe2\x94") || strings.HasPrefix(s, "\xe2\x95") || strings.Contains(s, "(most recent call ") // box drawing
}

// isLibrary reports whether a line is of a launcher, of PyTorch, of NCCL or of the kernel.
func isLibrary(s string) bool {
	for _, r := range reports {
		if strings.HasPrefix(s, r) {
			return true
		}
	}
	if strings.Contains(s, ".cpp:") || strings.Contains(s, " NCCL INFO ") || strings.Contains(s, "NVRM:") || strings.Contains(s, "torch/distributed/") {
		return true
	}
	digits := strings.TrimLeft(s[1:], "0123456789")
	return s[0] == '#' && len(digits) < len(s)-1 || s[0] == '[' && digits == "]:" // "#12 f from x.cpp", "[0]:" of torchrun
}

// advises reports whether a line names a variable or an address, as the advice in errors does.
func advises(s string) bool {
	if strings.Contains(s, "://") {
		return true
	}
	const least = 8 // letters of an environment variable's name: CUDA_LAUNCH_BLOCKING
	for _, name := range strings.FieldsFunc(s, func(r rune) bool { return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) {
		if len(name) >= least && strings.IndexByte(strings.Trim(name, "_"), '_') > 0 && name[0] >= 'A' {
			return true
		}
	}
	return false
}

// orders are the texts of orders to end, by a part of them that few lines have.
var orders = []struct {
	mark  []byte
	texts []string
}{
	{[]byte("SIG"), []string{"SIGTERM", "SIGINT"}},
	{[]byte("ignal"), []string{"signal 15", "Signal 15", "signal: 15", "death signal"}},
	{[]byte("reempt"), []string{"reempt"}},
}

var (
	obeys    = []string{"receiv", "caught", "got", "sent", "sending", "closing", "terminat", "exiting", "shutting"}
	prepares = []string{"handler", "handlers", "install", "regist", "when", "if"}
)

// ordersEnd reports whether a line says that a process or the job is ended by order: no later error
// is its own cause.
func ordersEnd(line []byte) bool {
	if bytes.Contains(line, []byte("CANCELLED AT")) || bytes.HasPrefix(line, []byte("Terminated")) && len(bytes.TrimSpace(line)) == len("Terminated") {
		return true
	}
	for i := range orders {
		o := &orders[i]
		if !bytes.Contains(line, o.mark) {
			continue
		}
		s := string(line[:min(len(line), maxFault)])
		if slices.ContainsFunc(o.texts, func(t string) bool { return strings.Contains(s, t) }) {
			return spokenOf(s, obeys) && !spokenOf(s, prepares)
		}
	}
	_, of, ok := bytes.Cut(line, []byte("srun: "))
	return ok && severalKilled(of) || closes(line)
}

// severalKilled reports whether srun killed several tasks at once.
func severalKilled(of []byte) bool {
	_, of, ok := bytes.Cut(of, []byte(": tasks "))
	return ok && (bytes.HasSuffix(of, []byte(": Killed")) || bytes.HasSuffix(of, []byte(": Terminated")))
}
