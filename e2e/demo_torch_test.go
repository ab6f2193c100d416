package e2e

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// `lockstep demo --torch` finds what ails a rank of a program that calls nothing of
// ours, and names no other for it.
func TestTorchDemo(t *testing.T) {
	python := torchPython(t)
	fault := demoFault{name: "gc", class: "host", cause: "gc", op: "garbage_collection", found: map[string]verdict{"scopes": decides}}
	holds(t, func() string { return fault.wrong(runTorchDemo(t, python, fault.name, 1), "scopes", 1) })
}

// runTorchDemo returns the findings.
func runTorchDemo(t *testing.T, python, fault string, rank int) (findings []demoLine) {
	t.Helper()
	p := start(t, nil, built(t, "lockstep"), "demo", "--json", "--torch="+python, "--fault", fault, "--rank", strconv.Itoa(rank),
		"--ranks", "3", "--steps", "40", "--dir", t.TempDir())
	require.Zero(t, p.wait(t, 5*time.Minute), p.output.String())
	for line := range bytes.Lines([]byte(p.output.String())) {
		var l demoLine
		if json.Unmarshal(line, &l) == nil && l.Finding != "" { // PyTorch may warn
			findings = append(findings, l)
		}
	}
	return findings
}
