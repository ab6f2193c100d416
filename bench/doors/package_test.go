// SPDX-License-Identifier: Apache-2.0

// Package doors attacks a collector, and the library that runs inside of training
// processes, through every door that docs/security.md lists. `make doors` runs the attacks
// and prints the table of that document; without LOCKSTEP_DOORS they are skipped.
package doors

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// envCollector names the collector that is attacked.
const envCollector = "LOCKSTEP_DOORS"

func TestMain(m *testing.M) { goleak.VerifyTestMain(printed{m}) }

// printed prints the table after all attacks.
type printed struct{ *testing.M }

func (p printed) Run() int {
	code := p.M.Run()
	_, _ = os.Stdout.WriteString(table.String()) // if the write fails, run the attacks again
	return code
}

// rows are what the attacks came to.
type rows struct {
	mu    sync.Mutex
	lines []string
}

var table rows

// add is for a test that has come to its end; its name says how to run it alone.
func (r *rows) add(t *testing.T, door, attack string, tries int, peakBytes int64, counted string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	peak := "-"
	if peakBytes > 0 {
		peak = fmt.Sprintf("%d MiB", peakBytes>>20)
	}
	r.lines = append(r.lines, fmt.Sprintf("| %s | %s | %d | %s | %s | %s |", door, attack, tries, peak, counted, strings.TrimPrefix(t.Name(), "Test")))
}

func (r *rows) String() string {
	if len(r.lines) == 0 {
		return ""
	}
	return "| door | attack | tries | peak RSS | counted | DOORS= |\n|---|---|---|---|---|---|\n" + strings.Join(r.lines, "\n") + "\n"
}
