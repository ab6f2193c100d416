// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// table is the outcomes, by component, signal and mode. It is safe for concurrent use.
type table struct {
	rows    [][2]string // component and signal
	columns []string

	mu   sync.Mutex
	cell map[[3]string]string
}

// newTable returns a table with a column for each mode.
func newTable(of []mode) *table {
	tb := &table{cell: map[[3]string]string{}}
	for i := range of {
		tb.columns = append(tb.columns, of[i].name)
	}
	return tb
}

func (tb *table) row(name, signal string) { tb.rows = append(tb.rows, [2]string{name, signal}) }

func (tb *table) set(name, signal, mode, text string) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.cell[[3]string{name, signal, mode}] = text
}

func (tb *table) text() string {
	var b strings.Builder
	line := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(append([]string{"component", "signal"}, tb.columns...)...)
	b.WriteString(strings.Repeat("|---", 2+len(tb.columns)) + "|\n")
	for _, r := range tb.rows {
		cells := r[:]
		for _, c := range tb.columns {
			cells = append(cells, tb.cell[[3]string{r[0], r[1], c}])
		}
		line(cells...)
	}
	return b.String()
}

// compare compares the table with a file of testdata, unless a cell has failed.
func (tb *table) compare(t *testing.T, file string) {
	t.Helper()
	if t.Failed() {
		return
	}
	path := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(tb.text()), 0o644)) //nolint:gosec // it is committed
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), tb.text(), "go test ./internal/refusals -update writes it")
}
