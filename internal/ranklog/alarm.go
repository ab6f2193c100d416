// SPDX-License-Identifier: Apache-2.0

package ranklog

import "bytes"

var (
	// speakers are those who watch operations, and stuckWords what they say of what does not go on.
	speakers   = [][]byte{[]byte("atchdog"), []byte("eartbeat monitor"), []byte("eartbeatMonitor")}
	stuckWords = [][]byte{[]byte("stuck"), []byte("timed out"), []byte(" hang"), []byte("hung")}
)

// alarm reports whether a line says that an operation or a watchdog is stuck, also where it does not
// say which: one of a watchdog or a heartbeat monitor, or an error of a process group's own code.
func alarm(s []byte) bool {
	return containsAny(s, speakers) && containsAny(s, stuckWords) || groupError(s)
}

func containsAny(s []byte, parts [][]byte) bool {
	for _, p := range parts {
		if bytes.Contains(s, p) {
			return true
		}
	}
	return false
}

// groupError reports whether the code of a process group wrote a line as an error:
// "[E1116 10:00:00.1 ProcessGroupNCCL.cpp:632]", before 2.1 without the time.
func groupError(s []byte) bool {
	i := bytes.Index(s, []byte(" ProcessGroup"))
	if i < 0 {
		return false
	}
	open := bytes.LastIndexByte(s[:i], '[')
	file, _, ok := bytes.Cut(s[i+1:], []byte(".cpp:"))
	return ok && open >= 0 && (s[open+1] == 'E' || s[open+1] == 'F') && !bytes.ContainsAny(file, " ]")
}
