// SPDX-License-Identifier: Apache-2.0

package stragglerprocessor

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every counter that the README's table of bad input names is there.
func TestBadInputIsCounted(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	docs, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(readme), "\n## Bad input\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile(`(?m)^\|.*\|$`).FindAllString(section, -1)
	require.Greater(t, len(rows), 10)
	counter := regexp.MustCompile("`([a-z_]+)`")
	for _, row := range rows[2:] {
		cells := strings.Split(row, "|")
		names := counter.FindAllStringSubmatch(cells[3], -1)
		require.NotEmpty(t, names, row)
		for _, name := range names {
			assert.Contains(t, string(docs), "### otelcol_processor_straggler_"+name[1]+"\n")
		}
	}
}
