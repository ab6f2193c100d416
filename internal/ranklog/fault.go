// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// weight is how much an error explains why its rank came no further.
type weight int

const (
	weightNone    weight = iota
	weightResult         // others' ends cause it: an aborted communicator, a closed connection
	weightUnclear        // an exception that the program or another's end may cause
	weightOwn            // an exception of the program
	weightDevice         // memory, device or signal
)

// fault is the last error of a rank.
type fault struct {
	text   string
	weight weight
	at     place
	first  place  // the first line of this kind
	stamp  moment // of that line; 0: it has none
	caught bool   // its rank went on
	// doubted: another rank may be why it came, which is silent or has such an error, too.
	doubted bool
}

// devices are texts of errors of memory and devices.
var devices = []string{
	"OutOfMemoryError", "CUDA out of memory", "HIP out of memory", "out of memory (OOM)", "MemoryError", "std::bad_alloc",
	"CUDA error: ", "HIP error: ", "device-side assert triggered", "illegal memory access", "ncorrectable ECC error encountered", "cudaErrorECC",
}

// errorEnds are the endings of names of exceptions.
var errorEnds = []string{"Error", "Exception", "Interrupt", "Exit", "Failed", "Failure", "StopIteration", "Expired", "BrokenProcessPool", "queue.Empty", "queue.Full"}

// faultOf reads an error from a line; inTrace: a traceback precedes it.
func faultOf(s []byte, inTrace bool) (text string, w weight) {
	line := bytes.TrimRight(s, " \t")
	if i := bytes.Index(line, []byte("OutOfMemoryError: ")); i > 0 && inTrace {
		line = line[bytes.LastIndexByte(line[:i], ' ')+1:]
	}
	trimmed := bytes.TrimPrefix(bytes.TrimPrefix(line, []byte(" ")), []byte(":"))
	trimmed = bytes.TrimPrefix(trimmed, []byte(" "))
	bare := string(bytes.TrimSpace(trimmed))
	if w := bySignal(bare); w != weightNone {
		return cut(bare), w
	}
	switch {
	case strings.Contains(bare, "NVRM: Xid ("):
		return cut(bare), weightDevice
	case strings.Contains(bare, "NCCL WARN") && (strings.Contains(bare, "error") || strings.Contains(bare, "failed")):
		return cut(bare), weightResult
	}
	if _, e, ok := strings.Cut(bare, watchdogEnd); ok {
		return cut(e), cause(e)
	}
	native := strings.HasPrefix(bare, "CUDA error: ") || strings.HasPrefix(bare, "HIP error: ")
	if !native && !exception(trimmed, inTrace) && !bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("what():")) || !inTrace && remarked(bare) {
		return "", weightNone
	}
	return cut(bare), cause(bare)
}

// watchdogEnd precedes the error that ended a watchdog: of the device, of NCCL, or a time-out.
const watchdogEnd = "watchdog thread terminated with exception: "

// endOfWatchdog reads the group, and the rank in it, of a line by which a watchdog reports an error that
// ended it.
func endOfWatchdog(s []byte) (g group, in int64, ok bool) {
	before, _, ok := bytes.Cut(s, []byte(watchdogEnd))
	if !ok {
		return group{}, -1, false
	}
	said := said{groupRank: -1}
	said.where(before)
	return said.group, said.groupRank, said.groupRank >= 0
}

// remarked reports whether a line ends with a remark in parentheses: a program reports an error that
// it caught. Numbers in parentheses are sizes of memory or codes of the error.
func remarked(s string) bool {
	i := strings.LastIndex(s, " (")
	return i >= 0 && strings.HasSuffix(s, ")") && !strings.ContainsAny(s[i:], "0123456789")
}

// signals are signals that a process raises itself, or that the kernel ends it with.
var signals = []string{"Segmentation fault", "Bus error", "Illegal instruction", "Floating point exception", "Killed"}

// bySignal reads a line that says that a signal ended the process: of the shell, of Python, of UCX.
func bySignal(s string) weight {
	dead, fatal := strings.CutPrefix(s, "Fatal Python error: ")
	switch core := strings.TrimSuffix(s, " (core dumped)"); {
	case fatal && slices.Contains(signals, dead), slices.Contains(signals, core), strings.Contains(s, "Caught signal 11 (Segmentation fault"):
		return weightDevice
	case fatal && !strings.HasPrefix(dead, "Aborted") && !strings.HasPrefix(dead, "Terminated") && !spokenOf(dead, ofOthers):
		return weightUnclear
	case fatal, s == "Aborted (core dumped)":
		return weightResult
	}
	return weightNone
}

// hasBar reports whether a text has a progress bar.
func hasBar(s []byte) bool {
	i := bytes.IndexByte(s, '/')
	return i >= 0 && (bytes.Contains(s[max(0, i-len("it")):], []byte("it/s")) || bytes.Contains(s[max(0, i-len("s")):], []byte("s/it"))) || bytes.Contains(s, []byte("%|"))
}

// exception reports whether a line is the last of a traceback: "torch.OutOfMemoryError: CUDA out
// of memory". Outside of one only memory and device errors count, since programs print others.
func exception(s []byte, inTrace bool) bool {
	i := 0
	for i < len(s) && i < maxName && (s[i] == '.' || s[i] == '_' || s[i] >= '0' && s[i] <= '9' || s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z') {
		i++
	}
	name := string(s[:i])
	if i == 0 || i < len(s) && s[i] != ':' || !ends(name, errorEnds) {
		return false
	}
	return inTrace || strings.Contains(name, "OutOfMemory")
}

// maxName bounds the names of exceptions.
const maxName = 200

func ends(s string, list []string) bool {
	for _, e := range list {
		if strings.HasSuffix(s, e) {
			return true
		}
	}
	return false
}

// maxFault bounds the text of an error that is kept, bytes.
const maxFault = 300

// cut shortens a text at the end of a character.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxFault {
		return s
	}
	n := maxFault
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// take keeps the heavier of two errors, and the later of equal ones; true where that is the other one. Of
// errors of one kind it keeps where the first is, too.
func (f *fault) take(o fault) bool {
	if o.weight == weightNone || o.weight < f.weight {
		return false
	}
	if o.weight == f.weight && o.first.file == f.first.file && kindOf(o.text, o.weight) == kindOf(f.text, f.weight) && f.first.line < o.first.line {
		o.first, o.stamp = f.first, f.stamp
	}
	*f = o
	return true
}

// deviceKind begins the kinds of errors of memory and devices.
const deviceKind = "device "

// kindOf is what errors are compared by: the type alone, since texts differ between ranks.
func kindOf(text string, w weight) string {
	if w == weightDevice {
		return deviceKind + typeOf(text)
	}
	return typeOf(text)
}
