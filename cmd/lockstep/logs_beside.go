// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/ranklog"
)

// stuckByLogs says what logs say of operations and watchdogs that are stuck; empty where they say nothing.
func stuckByLogs(l *ranklog.Result) string {
	switch {
	case l.Waiting == 1:
		return "the logs say that an operation timed out"
	case l.Waiting > 1:
		return fmt.Sprintf("the logs say that %d operations timed out", l.Waiting)
	case l.Alarms == 1:
		return "the logs have a line that says that an operation or a watchdog is stuck"
	case l.Alarms > 1:
		return fmt.Sprintf("the logs have %d lines that say that an operation or a watchdog is stuck", l.Alarms)
	}
	return ""
}

// silentLogs says that logs were read and add nothing.
func silentLogs(l *ranklog.Result) string {
	files := "1 file"
	if l.Files != 1 {
		files = fmt.Sprintf("%d files", l.Files)
	}
	return "The logs (" + files + ") have no line that says that an operation or a watchdog is stuck."
}
