// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// capabilityCells reads a line of the first table of docs/capabilities.md: what each
// of the rows that the demo knows can tell of one class.
func capabilityCells(t *testing.T, class, cause string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot(t), "docs", "capabilities.md"))
	require.NoError(t, err)
	key := "| `" + class + "` |"
	if cause != "" {
		key = "| `" + class + "`, cause `" + cause + "` |"
	}
	_, rest, ok := strings.Cut(string(text), "\n"+key)
	require.True(t, ok, "a line of %s", key)
	line, _, _ := strings.Cut(rest, "\n")
	columns := strings.Split(line, "|")
	require.Greater(t, len(columns), len(witnessRows))
	cells := map[string]string{}
	for i, row := range witnessRows {
		cells[row] = strings.Trim(columns[i], " *")
	}
	return cells
}

// What the demo is held to is what the table says of its class. A cell that bounds
// names the classes that come of it in other programs; the demo's is one of them.
func TestDemoIsHeldToTheCapabilities(t *testing.T) {
	for _, f := range demoFaults {
		if f.name == "none" {
			continue
		}
		cells := capabilityCells(t, f.class, f.cause)
		for _, row := range witnessRows {
			said, told, _ := strings.Cut(cells[row], ":")
			got := f.found[row]
			switch allowed := verdict(said); allowed {
			case bounds:
				assert.NotEqual(t, abstains, got, "%s with %s", f.name, row)
				assert.Contains(t, told, "`"+f.class+"`", "%s with %s", f.name, row)
			default:
				assert.Equal(t, allowed, got, "%s with %s", f.name, row)
			}
		}
	}
}
