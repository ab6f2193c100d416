// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// `lockstep demo --torch` finds what ails a rank of a program that calls nothing of
// ours, and names no other for it.
func TestTorchDemo(t *testing.T) {
	python := torchPython(t)
	fault := demoFault{name: "gc", class: "host", cause: "gc", op: "garbage_collection", found: map[string]verdict{"scopes": decides}}
	holds(t, func() string { return fault.wrong(runTorchDemo(t, python, fault.name, 1), "scopes", 1) })
}

// A batch that never comes: the rank and what it waits for are named while the job stands.
func TestTorchDemoHangs(t *testing.T) {
	p := start(t, nil, built(t, "lockstep"), "demo", "--json", "--torch="+torchPython(t), "--fault", "hang", "--rank", "1",
		"--ranks", "3", "--once", "--dir", t.TempDir())
	require.Zero(t, p.wait(t, 5*time.Minute), p.output.String())
	var hangs []demoLine
	for _, l := range findingLines(p) {
		if l.Finding == "desync" {
			hangs = append(hangs, l)
		}
	}
	require.Len(t, hangs, 1, p.output.String())
	require.NotNil(t, hangs[0].Rank)
	assert.Equal(t, []any{1, "not_scheduled", "dataloader"}, []any{*hangs[0].Rank, hangs[0].Class, hangs[0].Cause})
}

// runTorchDemo returns the findings.
func runTorchDemo(t *testing.T, python, fault string, rank int) []demoLine {
	t.Helper()
	p := start(t, nil, built(t, "lockstep"), "demo", "--json", "--torch="+python, "--fault", fault, "--rank", strconv.Itoa(rank),
		"--ranks", "3", "--steps", "40", "--dir", t.TempDir())
	require.Zero(t, p.wait(t, 5*time.Minute), p.output.String())
	return findingLines(p)
}

func findingLines(p *process) (findings []demoLine) {
	for line := range bytes.Lines([]byte(p.output.String())) {
		var l demoLine
		if json.Unmarshal(line, &l) == nil && l.Finding != "" { // PyTorch may warn
			findings = append(findings, l)
		}
	}
	return findings
}
