// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
)

// maxLog bounds the log of a run, bytes.
const maxLog = 32 << 20

// Log collects what programs wrote.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
	lost int
}

func (l *Log) add(cmd *exec.Cmd, r *Result, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text.Len()+len(r.Stdout)+len(r.Stderr) > maxLog {
		l.lost++
		return
	}
	end := "ended well"
	if err != nil {
		end = err.Error()
	}
	fmt.Fprintf(&l.text, "==== %s\n==== %s, %.1f s\n%s\n---- stderr\n%s\n", strings.Join(cmd.Args, " "), end, r.Took.Seconds(), r.Stdout, r.Stderr)
}

// String returns the log.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > 0 {
		return fmt.Sprintf("%s==== %d programs left out: the log is full\n", l.text.String(), l.lost)
	}
	return l.text.String()
}
