// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sample has a check of each status, and figures that JSON cannot hold.
func sample() *Report {
	p := NewPart("cupti", "Kernels | of the device", 90*time.Second)
	p.Add("counts", Shown, "equal", Figure{"kernels", 1234567, "1"}, Figure{"share", 0.12345, "%"})
	p.Add("cost", StandIn, "", Figure{"nothing", math.NaN(), "%"}, Figure{"endless", math.Inf(1), "%"})
	p.Addf("clock", NotShown, "no GPU: %s", "two\nlines | and <b>")
	p.Add("names", Failed, "wrong")
	p.Add("device", Noted, "a clock")
	p.Close(1500 * time.Millisecond)
	return &Report{
		Format: Format, Kit: "1 abc", Began: time.Date(2026, 11, 29, 6, 30, 0, 0, time.UTC), TookS: 2,
		Machine: []Fact{{"gpu", "H200"}}, Parts: []*Part{p}, Files: []string{"cupti.tar.gz"},
	}
}

func TestReport_Write_RoundTrip(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, sample().Write(dir, func(s string) string { return s }))
	text, err := os.ReadFile(filepath.Join(dir, JSONName))
	require.NoError(t, err)
	var back Report
	require.NoError(t, json.Unmarshal(text, &back))
	require.Len(t, back.Parts, 1)
	want := sample().Parts[0].Checks
	want[1].Figures = nil // they are no numbers
	assert.Equal(t, want, back.Parts[0].Checks)
	assert.InDelta(t, 1.5, back.Parts[0].TookS, 0)
	assert.Equal(t, "H200", back.Fact("gpu"))
	assert.Empty(t, back.Fact("driver"))
	for _, s := range Statuses {
		assert.Equal(t, 1, back.Count(s), s)
	}
}

func TestReport_Markdown_StaysInItsTable(t *testing.T) {
	text := sample().Markdown()
	assert.Contains(t, text, "| `counts` | shown on the GPU | equal; kernels 1234567; share 0.1235 % |")
	assert.Contains(t, text, `| no GPU: two lines \| and &lt;b> |`)
	assert.Contains(t, text, "| `names` | FAILED | wrong |")
	assert.Contains(t, text, "| FAILED | 1 |")
}

func TestPart_Add_AfterCloseIsDropped(t *testing.T) {
	p := NewPart("late", "", time.Second)
	p.Add("before", Shown, "")
	p.Close(0)
	p.Add("after", Shown, "")
	require.Len(t, p.Checks, 1)
	assert.Equal(t, "before", p.Checks[0].Name)
}

func TestOneLine(t *testing.T) {
	assert.Equal(t, "a b c", oneLine("a\n\tb\x00\x1b c \n"))
	assert.Equal(t, "bad ? bytes", oneLine("bad \xff bytes"))
	long := oneLine(strings.Repeat("ü", maxText))
	assert.LessOrEqual(t, len(long), maxText)
	assert.True(t, utf8.ValidString(long))
	assert.True(t, strings.HasSuffix(long, "ü..."))
}

func TestReport_Write_IsClean(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, sample().Write(dir, strings.NewReplacer("H200", "0001", "equal", "00002", "gpu", "003", "counts", "000004").Replace))
	text, err := os.ReadFile(filepath.Join(dir, JSONName))
	require.NoError(t, err)
	var back Report
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, Fact{"gpu", "0001"}, back.Machine[0], "names are the kit's own")
	assert.Equal(t, "counts", back.Parts[0].Checks[0].Name)
	assert.Equal(t, "00002", back.Parts[0].Checks[0].Text)
	markdown, err := os.ReadFile(filepath.Join(dir, MarkdownName))
	require.NoError(t, err)
	assert.NotContains(t, string(markdown), "H200")
}
