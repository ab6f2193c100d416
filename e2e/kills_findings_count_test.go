// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// findingFile are the findings of a file of lines that a gateway appends to.
type findingFile struct {
	file  string
	bytes int64 // that were read
	lines []finding
}

// read returns the findings in their order. A line that a kill has cut is none.
func (l *findingFile) read(t *testing.T) []finding {
	t.Helper()
	f, err := os.Open(l.file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Seek(l.bytes, io.SeekStart)
	require.NoError(t, err)
	content, err := io.ReadAll(f)
	require.NoError(t, err)
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the rest comes, or never
		}
		l.bytes += int64(len(line))
		var logs logLine
		if json.Unmarshal(line, &logs) == nil {
			l.lines = append(l.lines, logs.findings()...)
		}
	}
	return l.lines
}

// newSince counts the findings that were first reported after so many lines.
func newSince(lines []finding, before int) int {
	ids := map[string]bool{}
	for _, f := range lines[:before] {
		ids[f["lockstep.finding.id"]] = true
	}
	known := len(ids)
	for _, f := range lines[before:] {
		ids[f["lockstep.finding.id"]] = true
	}
	return len(ids) - known
}

func (f finding) closed() bool { return f["lockstep.finding.status"] == "closed" }

// opened reports whether the line says that the finding is new.
func (f finding) opened() bool {
	return f["lockstep.finding.status"] == "open" && f["lockstep.finding.revision"] == "1"
}

// is reports whether a finding is that of the job's fault.
func (j *faultJob) is(f finding) bool {
	of := j.fault
	if f["lockstep.finding.kind"] != of.Kind || f["lockstep.finding.class"] != of.Class || of.Op != "" && f["lockstep.finding.op"] != of.Op {
		return false
	}
	return j.concerns(f)
}

// concerns reports whether a finding is of the job, or of its clocks.
func (j *faultJob) concerns(f finding) bool {
	return f["lockstep.job.id"] == j.name || strings.HasPrefix(f["lockstep.finding.clock"], "host:"+j.name+"-")
}

// last returns the last line of the job's finding; nil for none.
func (j *faultJob) last(lines []finding) finding {
	for _, f := range slices.Backward(lines) {
		if j.is(f) {
			return f
		}
	}
	return nil
}

// repeated counts the lines that report the job's finding as new, or under another id, after the first one.
func (j *faultJob) repeated(lines []finding) (again int) {
	id := ""
	for _, f := range lines {
		switch {
		case !j.is(f):
		case id == "":
			id = f["lockstep.finding.id"]
		case f["lockstep.finding.id"] != id, f.opened():
			again++
		}
	}
	return again
}

// leftOpen is 1 where the job's fault is removed and its finding is still open.
func (j *faultJob) leftOpen(lines []finding) int {
	if last := j.last(lines); j.ends() && last != nil && !last.closed() {
		return 1
	}
	return 0
}

// silent reports whether the finding is not repeated within a test: those of clocks are every 3 minutes.
func (j *faultJob) silent() bool { return j.fault.Kind == model.FindingClock }

// kept is 1 where the finding that was open before so many lines is repeated, open, under its id after them. Of one that is
// not repeated, no other may be opened.
func (j *faultJob) kept(lines []finding, before int) int {
	was := j.last(lines[:before])
	for _, f := range lines[before:] {
		if j.is(f) {
			if was != nil && f["lockstep.finding.id"] == was["lockstep.finding.id"] && (!f.closed() || j.silent()) {
				return 1
			}
			return 0
		}
	}
	if was != nil && j.silent() {
		return 1
	}
	return 0
}

// openedCount returns how many findings a gateway has counted as opened since it was started.
func openedCount(t *testing.T, url string) (n int) {
	t.Helper()
	page, err := get(url)
	require.NoError(t, err)
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "lockstep_findings_total{") || !strings.Contains(line, `lockstep_finding_status="open"`) {
			continue
		}
		fields := strings.Fields(line)
		value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
		require.NoError(t, err)
		n += int(value)
	}
	return n
}

// findingsTally is the outcome of a run with kills.
type findingsTally struct {
	kills int
	rows  []findingsRow
	// others are findings that no fault explains.
	others []string
}

type findingsRow struct {
	name                     string
	kept, repeated, leftOpen int
}

func (c *findingsTally) String() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "finding\tkills\tkept\trepeated as new\tleft open\t")
	for _, of := range c.rows {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t\n", of.name, c.kills, of.kept, of.repeated, of.leftOpen)
	}
	_ = table.Flush()
	return b.String()
}
