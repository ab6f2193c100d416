// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// procDirectory is where the kernel tells of processes.
const procDirectory = "/proc"

// ProcessState returns what the kernel says of a process; empty where it says nothing that is known.
func ProcessState(pid int) model.ProcessState { return processState(procDirectory, pid) }

// processState is what the kernel says of a process; empty where it says nothing that is
// known. One that a debugger is attached to, and lets run, runs.
func processState(proc string, pid int) model.ProcessState {
	file, err := os.Open(filepath.Join(proc, strconv.Itoa(pid), "status"))
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // only read from
	state, tracer := "", "0"
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "State:"); ok {
			state = strings.TrimSpace(value)
		}
		if value, ok := strings.CutPrefix(lines.Text(), "TracerPid:"); ok {
			tracer = strings.TrimSpace(value)
			break
		}
	}
	if state == "" {
		return ""
	}
	switch state[0] {
	case 't':
		return model.ProcessTraced
	case 'T':
		if tracer != "0" {
			return model.ProcessTraced
		}
		return model.ProcessStopped
	case 'Z', 'X':
		return model.ProcessDead
	}
	if frozen(proc, pid) { // its state is that of what it was in
		return model.ProcessFrozen
	}
	return model.ProcessRunning
}
