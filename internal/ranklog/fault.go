// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// weight is how much an error explains why its rank came no further.
type weight int

const (
	weightNone   weight = iota
	weightResult        // others' ends cause it: an aborted communicator, a closed connection
	weightOwn           // an exception
	weightDevice        // memory, device or signal
)

// fault is the last error of a rank.
type fault struct {
	text   string
	weight weight
	at     place
	caught bool // its rank went on
	late   bool // the launcher had ended the ranks that were left
}

// results are texts of errors that ranks have since another one ended or timed out.
var results = []string{
	"Watchdog caught", "DistBackendError", "DistNetworkError", "DistStoreError", "ChildFailedError", "SignalException",
	"NCCL communicator was aborted", "ncclRemoteError", "ncclSystemError", "ncclInternalError", "NCCL error", "ncclUnhandled",
	"Connection reset by peer", "Connection closed by", "Broken pipe", "BrokenPipeError", "ConnectionResetError",
	"ConnectionRefusedError", "KeyboardInterrupt", "SystemExit", "SIGTERM", "ProcessRaisedException", "ProcessExitedException",
	"recvValue failed", "failed to recv", "killed by signal: Terminated", "killed by signal: Aborted", "Timed out waiting", "monitoredBarrier",
	"Signals.SIGABRT", "Signals.SIGTERM", "client socket has timed out", "ActorDiedError", "ActorUnavailableError", "RayActorError",
	"WorkerCrashedError", "NCCL Error", "Stop_waiting", "stop_waiting", "wait timeout after", "wandb.errors.",
	"Fatal Python error: Aborted", "Fatal Python error: Terminated",
}

// devices are texts of errors of memory, devices and signals.
var devices = []string{
	"OutOfMemoryError", "CUDA out of memory", "HIP out of memory", "out of memory (OOM)", "ncorrectable ECC error encountered", "NVRM: Xid",
	"CUDA error: ", "HIP error: ", "device-side assert triggered", "Fatal Python error: ", "Segmentation fault", "Bus error",
	"MemoryError", "cudaErrorECC", "illegal memory access",
}

// errorEnds are the endings of names of exceptions.
var errorEnds = []string{"Error", "Exception", "Interrupt", "Exit", "Failed", "Failure", "StopIteration", "Expired", "queue.Empty", "queue.Full"}

// faultOf reads an error from a line; inTrace: a traceback precedes it.
func faultOf(s []byte, inTrace bool) (text string, w weight) {
	line := bytes.TrimRight(s, " \t")
	if i := bytes.Index(line, []byte("OutOfMemoryError: ")); i > 0 && (inTrace || hasBar(line[:i])) {
		line = line[bytes.LastIndexByte(line[:i], ' ')+1:]
	}
	trimmed := bytes.TrimPrefix(bytes.TrimPrefix(line, []byte(" ")), []byte(":"))
	trimmed = bytes.TrimPrefix(trimmed, []byte(" "))
	named := exception(trimmed, inTrace) || bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("what():"))
	bare := string(bytes.TrimSpace(trimmed))
	switch {
	case bare == "Killed" || bare == "Segmentation fault (core dumped)" || bare == "Aborted (core dumped)" || bare == "Bus error (core dumped)":
		if bare[0] == 'A' {
			return bare, weightResult
		}
		return bare, weightDevice
	case strings.HasPrefix(bare, "Fatal Python error: "), strings.Contains(bare, "NVRM: Xid"), strings.HasPrefix(bare, "CUDA error: "), strings.Contains(bare, "ncorrectable ECC error encountered"),
		strings.Contains(bare, "Caught signal 11 (Segmentation fault"):
		named = true
	case strings.Contains(bare, "NCCL WARN") && (strings.Contains(bare, "error") || strings.Contains(bare, "failed")):
		return cut(bare), weightResult
	}
	if !named {
		return "", weightNone
	}
	for _, r := range results {
		if strings.Contains(bare, r) {
			return cut(bare), weightResult
		}
	}
	for _, d := range devices {
		if strings.Contains(bare, d) {
			return cut(bare), weightDevice
		}
	}
	return cut(bare), weightOwn
}

// hasBar reports whether a text is a progress bar, behind which an error may begin. Behind other
// texts a program reports an error that it caught.
func hasBar(s []byte) bool {
	return bytes.Contains(s, []byte("%|")) || bytes.Contains(s, []byte("it/s")) || bytes.Contains(s, []byte("s/it"))
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

// take keeps the heavier of two errors, and the later of equal ones; true where that is this one. One
// behind the launcher's signal does not replace an exception in front of it.
func (f *fault) take(text string, w weight, at place, late bool) bool {
	if w == weightNone || w < f.weight || late && !f.late && f.weight >= weightOwn {
		return false
	}
	*f = fault{text: text, weight: w, at: at, late: late}
	return true
}
