package e2e

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// `lockstep demo --torch` finds what ails a rank of a program that calls nothing of
// ours.
func TestTorchDemo(t *testing.T) {
	python := torchPython(t)
	p := start(t, nil, built(t, "lockstep"), "demo", "--json", "--torch="+python, "--fault", "gc", "--rank", "1",
		"--ranks", "3", "--steps", "40", "--dir", t.TempDir())
	require.Zero(t, p.wait(t, 5*time.Minute), p.output.String())
	var found []demoLine
	for line := range bytes.Lines([]byte(p.output.String())) {
		var l demoLine
		if json.Unmarshal(line, &l) == nil && l.Finding != "" { // PyTorch may warn
			found = append(found, l)
		}
	}
	is := func(l demoLine) bool {
		return l.Rank != nil && *l.Rank == 1 && l.Class == "host" && l.Cause == "gc" && l.Op == "garbage_collection"
	}
	assert.True(t, slices.ContainsFunc(found, is), "%v", found) // a busy machine may add others
}
