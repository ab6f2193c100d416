// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"fmt"
	"strings"
)

var (
	markWorkerExit = []byte("Worker exit type: SYSTEM_ERROR")
	markWorkerPID  = "Worker PID: "
)

// raylet takes the end of a worker that Ray reports by its process: the label of its lines has it. What ended the
// process is not known to Ray.
func (l *reader) raylet(label string, s []byte, at place) {
	if !bytes.Contains(s, markWorkerExit) {
		return
	}
	pid, ok := after(s, markWorkerPID)
	if !ok {
		return
	}
	name := fmt.Sprintf("pid=%d", pid)
	for from := range l.set.origins {
		if from.file != l.file || from.label == label || !hasField(from.label, name) {
			continue
		}
		rec := l.set.record(from, at)
		if rec == nil {
			return
		}
		w := weightUnclear
		if rec.order.given() || l.order.given() {
			w = weightResult
		}
		rec.fail(fault{text: "Ray: its worker died by a signal or an exit of its own", weight: w, at: at, first: at})
	}
}

// hasField reports whether a label of Ray has a field: "Worker pid=12, ip=10.0.0.1".
func hasField(label, field string) bool {
	for part := range strings.FieldsSeq(label) {
		if strings.TrimRight(part, ",") == field {
			return true
		}
	}
	return false
}
