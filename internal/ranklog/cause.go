// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"slices"
	"strings"
)

// ofOthers are the words of errors of what a process shares with others: connections, waits for
// others, their ends and its own end by order. A word begins with one of them.
var ofOthers = []string{
	"timeout", "timed", "expired", "connect", "disconnect", "socket", "transport", "endpoint", "peer", "remote", "rpc", "grpc", "http", "unreachable", "unavailable", "retries",
	"rendezvous", "rdzv", "distributed", "barrier", "monitoredbarrier", "nccl", "gloo", "c10d", "heartbeat", "watchdog", "recv",
	"died", "dead", "exit", "closed", "closing", "abort", "cancel", "interrupt", "terminat", "shutdown", "shut", "sigterm", "sigint", "sigabrt", "stop_waiting",
}

// ofNames are words that say the same in the name of an exception, and not in a sentence.
var ofNames = []string{"dist", "store", "comm", "signal", "node", "network", "broken", "eof", "child", "process", "worker", "actor", "engine", "client", "server", "service"}

// ofDriver are errors of a device whose process ends. The text of one may be cut.
var ofDriver = []string{"driver shutting down", "context is destroyed"}

// ofCode are exceptions of code: what their text names is a key, an attribute or a source. Those of
// imports are not among them: programs catch them, and all ranks have the same modules.
var ofCode = []string{
	"KeyError", "AttributeError", "NameError", "UnboundLocalError", "TypeError", "SyntaxError", "IndentationError", "NotImplementedError",
	"ZeroDivisionError", "RecursionError", "JSONDecodeError", "UnicodeDecodeError", "UnicodeEncodeError", "StopIteration", "StopAsyncIteration",
}

// ofValues are exceptions of data and files, which others' ends may cause, too.
var ofValues = []string{
	"ValueError", "AssertionError", "IndexError", "LookupError", "ArithmeticError", "OverflowError", "FloatingPointError", "BufferError",
	"FileNotFoundError", "FileExistsError", "IsADirectoryError", "NotADirectoryError", "PermissionError",
}

// cause returns the class of an error by its type and its text: "ValueError: bad sample".
func cause(s string) weight {
	if _, states := statementOf([]byte(s)); states {
		return weightResult // it says what other ranks do
	}
	name, said, _ := strings.Cut(s, ":")
	if _, e, ok := strings.Cut(s, "CUDA error: "); ok && slices.ContainsFunc(ofDriver, func(d string) bool { return strings.HasPrefix(e, d) || strings.HasPrefix(d, e) }) {
		return weightResult
	}
	kind := typeOf(s)
	if _, signal, ok := strings.Cut(said, "killed by signal: "); ok {
		return bySignalOf(signal)
	}
	if _, signal, ok := strings.Cut(said, "died with <Signals."); ok {
		return bySignalOf(signal)
	}
	switch memory := slices.ContainsFunc(devices, func(d string) bool { return strings.Contains(kind, d) }); {
	case memory:
		return weightDevice
	case strings.Contains(name, ".") && spokenOf(humps(name), ofOthers), spokenOf(humps(kind), ofOthers), spokenOf(humps(kind), ofNames):
		return weightResult
	case slices.Contains(ofCode, kind):
		return weightOwn
	case strings.Contains(strings.ToLower(said), "nccl"):
		return weightResult
	case slices.ContainsFunc(devices, func(d string) bool { return strings.Contains(s, d) }):
		return weightDevice
	}
	own := slices.Contains(ofValues, kind) || strings.HasPrefix(name, "__main__.")
	switch others := spokenOf(said, ofOthers) || strings.Contains(strings.ToLower(said), "broken pipe"); {
	case own && !others:
		return weightOwn
	case others && !own:
		return weightResult
	}
	return weightUnclear
}

// bySignalOf returns the class of the signal that ended a child of the process.
func bySignalOf(signal string) weight {
	switch {
	case spokenOf(signal, []string{"killed", "sigkill"}):
		return weightOwn
	case spokenOf(signal, []string{"segmentation", "sigsegv", "bus", "sigbus", "illegal", "sigill", "floating", "sigfpe"}):
		return weightDevice
	}
	return weightResult
}

// typeOf is the type of an exception without its module: OutOfMemoryError of
// "torch.OutOfMemoryError: CUDA out of memory".
func typeOf(s string) string {
	name, _, _ := strings.Cut(s, ":")
	return name[strings.LastIndexByte(name, '.')+1:]
}

// humps parts the words of a name: "ray.exceptions.NodeDiedError" has Node, Died and Error.
func humps(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' && i > 0 && (name[i-1] >= 'a' && name[i-1] <= 'z' || i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z') {
			b.WriteByte(' ')
		}
		b.WriteByte(c)
	}
	return strings.ReplaceAll(b.String(), "_", " ")
}

// spokenOf reports whether a word of a text begins with one of the list, in lower case.
func spokenOf(s string, list []string) bool {
	for word := range words(s) {
		for _, w := range list {
			if strings.HasPrefix(word, w) {
				return true
			}
		}
	}
	return false
}

// words are the words of a text in lower case: letters, digits and underscores.
func words(s string) func(yield func(string) bool) {
	return strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}
