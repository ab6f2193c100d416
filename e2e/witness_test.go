// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/tier"
)

// What a fault may come to in a row of docs/capabilities.md.
type verdict string

const (
	decides  verdict = "decides"  // the rank and what is wrong with it
	bounds   verdict = "bounds"   // the rank and its class, without a cause
	abstains verdict = "abstains" // nothing
)

// witnessRows are those of docs/capabilities.md that `lockstep demo` can be
// watched with; each has what those before it have.
var witnessRows = []string{"host-events", "kernels", "proxy", "scopes", "cupti"}

// demoFault is a fault of the demo. Of each row, what is to be found.
type demoFault struct {
	name, class, cause string
	op                 string // by the rows that have scopes; any where empty
	kernel             string // by the row that has kernels, of what the device does
	found              map[string]verdict
}

func found(hostEvents, kernels, proxy, scopes, cupti verdict) map[string]verdict {
	return map[string]verdict{"host-events": hostEvents, "kernels": kernels, "proxy": proxy, "scopes": scopes, "cupti": cupti}
}

// A late host is one without a scope that tells why, so that its cause needs one;
// a slow link needs what the proxy waits for. The class of a slow device follows
// from the times at which its collectives were launched and began.
var demoFaults = []demoFault{
	{"compute", "compute", "", "", "cutlass::Kernel2", found(abstains, decides, decides, decides, decides)},
	{"host", "host", "", "(other)", "", found(abstains, decides, decides, decides, decides)},
	{"link", "link", "", "", "", found(abstains, abstains, decides, decides, decides)},
	{"compile", "host", "compile", "compile", "", found(abstains, bounds, bounds, decides, decides)},
	{"dataloader", "host", "dataloader", "data_loading", "", found(abstains, bounds, bounds, decides, decides)},
	{"gc", "host", "gc", "garbage_collection", "", found(abstains, bounds, bounds, decides, decides)},
	{"checkpoint", "host", "checkpoint", "checkpoint_save", "", found(abstains, bounds, bounds, decides, decides)},
	{"none", "", "", "", "", found(abstains, abstains, abstains, abstains, abstains)},
}

// demoLine is what `lockstep demo --json` prints: a finding, or its summary.
type demoLine struct {
	Finding string  `json:"finding"`
	Class   string  `json:"class"`
	Cause   string  `json:"cause"`
	Op      string  `json:"op"`
	Rank    *int    `json:"rank"`
	Cost    float64 `json:"cost_seconds"`
	AtStep  int     `json:"at_step"`
	Waiting []int   `json:"waiting"`
	Limit   float64 `json:"stall_limit_seconds"`
	Still   float64 `json:"still_seconds"`

	Steps       int    `json:"steps"`
	Identical   bool   `json:"weights_identical"`
	Ranks       int    `json:"ranks"`
	NotCompared string `json:"not_compared"`
}

// witnessed is how many steps a run has: the rows below scopes know of no marks,
// and find the steps from the eleventh on.
const witnessed = 45

// demosAtOnce is how many demos run at a time: each takes less than a quarter of a core, and a rank that
// waits for a core is slow.
const demosAtOnce = 2

// Every fault of the demo, with the data sources of every row, comes to what the table
// says. The quick tier runs each fault with a row that decides it and with one more, and each
// row. No other test runs at the same time.
func TestDemoFaultsInEveryRow(t *testing.T) {
	for _, name := range []string{"lockstep-demo-worker", "libnccl-profiler-lockstep.so", "lockstep-demo-cupti.so"} {
		built(t, name)
	}
	slots := make(chan struct{}, demosAtOnce)
	for i, fault := range demoFaults {
		// Of the five rows, the last two decide all faults; the first fault has a kernel to be
		// named, which only the last row has.
		quick := []string{witnessRows[i%3], witnessRows[4-i%2]}
		for _, row := range witnessRows {
			if !tier.Full(t) && !slices.Contains(quick, row) {
				continue
			}
			t.Run(fault.name+" with "+row, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				rank := i % liveRanks
				holds(t, func() string { return fault.wrong(runDemo(t, fault.name, row, rank), row, rank) })
			})
		}
	}
}

// aside is what a finding may cost beside that of the fault, in seconds per step: ranks
// that wait for cores on a busy machine cost little beside a fault of 30 ms.
const aside = 0.010

// holds runs a job anew where the machine was too busy for a judgement. What is wrong
// with one run must not be made good by another's half: each is judged as a whole.
func holds(t *testing.T, wrong func() string) {
	t.Helper()
	const tries = 5
	for range tries {
		w := wrong()
		if w == "" {
			return
		}
		t.Log(w)
	}
	assert.Fail(t, "not one run was right")
}

// wrong says what is wrong with what was told of a run: the fault is not among it, or
// something else is that costs as much as a fault; "" where nothing is.
func (f *demoFault) wrong(told []demoLine, row string, rank int) string {
	want, named := f.found[row], false
	for i := range told {
		l := &told[i]
		switch {
		case want != abstains && f.isNamed(l, want, row, rank):
			named = true
		case l.Class == "job_wide" && l.Rank == nil: // true of a machine that stalls, and accuses no rank
		case l.Class == "link" || l.Cost >= aside:
			return fmt.Sprintf("named without a cause for it: %+v", *l)
		}
	}
	if want != abstains && !named {
		return fmt.Sprintf("fault %s of rank %d with %s: want %s of %s %q; got %+v", f.name, rank, row, want, f.class, f.cause, told)
	}
	return ""
}

// A run in which an innocent is named is not right because the culprit is, too.
func TestWhatIsWrongWithARun(t *testing.T) {
	on := func(rank int, class, cause, op string, cost float64) demoLine {
		return demoLine{Finding: "straggler", Class: class, Cause: cause, Op: op, Rank: &rank, Cost: cost}
	}
	f := demoFault{"gc", "host", "gc", "garbage_collection", "", found(abstains, bounds, bounds, decides, decides)}
	right := on(2, "host", "gc", "garbage_collection", 0.03)
	for name, tc := range map[string]struct {
		told []demoLine
		row  string
		ok   bool
	}{
		"the culprit":              {[]demoLine{right}, "scopes", true},
		"and a little of another":  {[]demoLine{on(1, "host", "unknown", "", 0.004), right}, "scopes", true},
		"and an innocent":          {[]demoLine{right, on(1, "host", "unknown", "", 0.03)}, "scopes", false},
		"an innocent first":        {[]demoLine{on(1, "compute", "unknown", "", 0.01), right}, "scopes", false},
		"and a stall of all":       {[]demoLine{right, {Finding: "straggler", Class: "job_wide", Cost: 0.15}}, "scopes", true},
		"a stall of all alone":     {[]demoLine{{Finding: "straggler", Class: "job_wide", Cost: 0.15}}, "scopes", false},
		"and jitter of no rank":    {[]demoLine{right, {Finding: "straggler", Class: "jitter", Cost: 0.15}}, "scopes", false},
		"and a link":               {[]demoLine{right, on(1, "link", "unknown", "", 0.001)}, "scopes", false},
		"and another class of it":  {[]demoLine{right, on(2, "compute", "unknown", "", 0.03)}, "scopes", false},
		"another rank":             {[]demoLine{on(1, "host", "gc", "garbage_collection", 0.005)}, "scopes", false},
		"nobody":                   {nil, "scopes", false},
		"the cause, where unknown": {[]demoLine{right}, "kernels", false},
		"nobody, as is right":      {nil, "host-events", true},
		"somebody without ends":    {[]demoLine{on(2, "host", "unknown", "", 0.03)}, "host-events", false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.ok, f.wrong(tc.told, tc.row, 2) == "")
		})
	}
}

func (f *demoFault) isNamed(l *demoLine, want verdict, row string, rank int) bool {
	if l.Class != f.class || l.Rank == nil || *l.Rank != rank {
		return false
	}
	cause := "unknown"
	if want == decides && f.cause != "" {
		cause = f.cause
	}
	op := l.Op
	switch {
	case row == "cupti" && f.kernel != "":
		op = f.kernel
	case (row == "scopes" || row == "cupti") && f.op != "":
		op = f.op
	}
	return l.Cause == cause && l.Op == op && l.AtStep < witnessed-1 // found while the job ran
}

// notCompared is what the demo says of a row by which ranks are not compared.
var notCompared = map[string]string{
	"host-events": "when operations are enqueued does not say when they end, by which ranks are compared",
}

// runDemo returns the findings.
func runDemo(t *testing.T, fault, row string, rank int) (findings []demoLine) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"demo", "--json", "--fault", fault, "--witness", row, "--steps", strconv.Itoa(witnessed), "--dir", dir}
	if fault != "none" {
		args = append(args, "--rank", strconv.Itoa(rank))
	}
	p := start(t, nil, built(t, "lockstep"), args...)
	require.Zero(t, p.wait(t, time.Minute), p.output.String())
	for line := range bytes.Lines([]byte(p.output.String())) {
		var l demoLine
		require.NoError(t, json.Unmarshal(line, &l), string(line))
		if l.Finding != "" {
			findings = append(findings, l)
		} else {
			assert.Equal(t, witnessed, l.Steps, "the job ran to its end")
			assert.True(t, l.Identical)
			assert.Equal(t, liveRanks, l.Ranks)
			assert.Equal(t, notCompared[row], l.NotCompared)
		}
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
	return findings
}

func (l demoLine) String() string {
	rank := -1
	if l.Rank != nil {
		rank = *l.Rank
	}
	return fmt.Sprintf("rank %d, %s, cause %s, op %q, %.1f ms", rank, l.Class, l.Cause, l.Op, 1e3*l.Cost)
}
