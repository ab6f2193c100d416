// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/part"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// TestDocumentsAreUpToDate fails where a run was added, or a document changed by
// hand, without `go generate ./gpukit/runs`.
func TestDocumentsAreUpToDate(t *testing.T) {
	root := testdata.Root(t)
	known, err := read(filepath.Join(root, runsFile))
	require.NoError(t, err)
	for name, edit := range known.edits() {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		want, err := edit(string(text))
		require.NoError(t, err)
		assert.Equal(t, want, string(text), "%s: run go generate ./gpukit/runs", name)
	}
}

// TestClaims_NameChecks fails where a document claims by a part or by checks that the kit
// has not.
func TestClaims_NameChecks(t *testing.T) {
	checks := documented(t)
	for _, a := range part.All() {
		assert.NotEmpty(t, checks[a.Name], "gpukit/README.md describes the checks of part %s", a.Name)
	}
	for _, file := range claimFiles {
		text, err := os.ReadFile(filepath.Join(testdata.Root(t), file))
		require.NoError(t, err)
		found := mark.FindAllStringSubmatch(string(text), -1)
		assert.NotEmpty(t, found, file)
		for _, m := range found {
			assert.True(t, slices.ContainsFunc(checks[m[2]], func(c string) bool { return selects(m[3], c) }), "%s: %s is of no check", file, m[0])
		}
	}
}

// documented returns the names of checks in the tables of gpukit/README.md, by part.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata.Root(t), "gpukit", "README.md"))
	require.NoError(t, err)
	checks := map[string][]string{}
	name := regexp.MustCompile("`([^`]+)`")
	var section string
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "### `"); ok {
			section = strings.TrimRight(heading, "`\n")
		}
		cells := strings.Split(line, "|")
		if section == "" || len(cells) < 3 {
			continue
		}
		var first string
		for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
			check := strings.NewReplacer("MODE", "eager", "-N-", "-2-", "*", "x").Replace(m[1])
			if first == "" {
				first = check
			}
			if strings.HasPrefix(check, "-") { // as the first of the line, with another end
				check = first[:strings.LastIndexByte(first, '-')] + check
			}
			checks[section] = append(checks[section], check)
		}
	}
	return checks
}

// onGPU is a report of a run on a device, at an hour of a day.
func onGPU(hour int, gpu string, checks ...report.Check) *report.Report {
	return &report.Report{
		Format: report.Format, Kit: "1", Began: time.Date(2026, 12, 1, hour, 0, 0, 0, time.UTC),
		Machine: []report.Fact{{Name: "gpu", Value: gpu}, {Name: "driver", Value: "580.1"}},
		Parts:   []*report.Part{{Name: "nccl", Checks: checks}}, Files: []string{},
	}
}

func save(t *testing.T, r *report.Report) string {
	t.Helper()
	text, err := json.MarshalIndent(r, "", "  ")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

func TestAdd(t *testing.T) {
	shown := report.Check{Name: "ras-counts", Status: report.Shown, Text: "equal"}
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	later, earlier := save(t, onGPU(9, "1 x NVIDIA H200", shown)), save(t, onGPU(8, "1 x NVIDIA A100", shown))
	require.NoError(t, add(path, later))
	require.NoError(t, add(path, earlier))
	assert.ErrorContains(t, add(path, later), "there already")

	known, err := read(path)
	require.NoError(t, err)
	require.Len(t, known, 2)
	assert.Equal(t, "NVIDIA A100", device(known[0]), "oldest first")

	standIn := report.Check{Name: "ras", Status: report.StandIn}
	assert.ErrorIs(t, add(path, save(t, onGPU(7, "none: no driver", standIn))), errNoGPU)
	assert.ErrorIs(t, add(path, save(t, onGPU(7, "", shown))), errNoGPU)
	dirty := onGPU(7, "1 x NVIDIA H200", shown)
	dirty.Kit = "1 abc.modified"
	assert.ErrorContains(t, add(path, save(t, dirty)), "want a kit of a commit")
	for name, broken := range map[string]func(*report.Report){
		"got nothing as part 1": func(r *report.Report) { r.Parts = []*report.Part{nil} },
		"got no time":           func(r *report.Report) { r.Began = time.Time{} },
		"want one line":         func(r *report.Report) { r.Machine[0].Value = "1 x H200\n# forged" },
		`got status "passed"`:   func(r *report.Report) { r.Parts[0].Checks[0].Status = "passed" },
		"got status \"\"":       func(r *report.Report) { r.Parts[0].Checks[0].Status = "" },
		`got the GPU "1 x A|B"`: func(r *report.Report) { r.Machine[0].Value = "1 x A|B" },
		`got the GPU "1 x A<B"`: func(r *report.Report) { r.Machine[0].Value = "1 x A<B" },
		"want one line without": func(r *report.Report) { r.NotRun = []string{"a\nb"} },
		"text \"<!--\"":         func(r *report.Report) { r.LeftOut = []string{"<!--"} },
		"marks of a comment":    func(r *report.Report) { r.Parts[0].Checks[0].Text = strings.TrimSpace(end) },
	} {
		r := onGPU(7, "1 x NVIDIA H200", shown)
		broken(r)
		assert.ErrorContains(t, add(path, save(t, r)), name)
	}
	other := onGPU(7, "1 x NVIDIA H200", shown)
	other.Format = report.Format + 1
	assert.ErrorContains(t, add(path, save(t, other)), "got format 2; want 1")

	require.NoError(t, os.WriteFile(path, []byte("{cut\n"), 0o600))
	_, err = read(path)
	assert.ErrorContains(t, err, "line 1")
}

func TestClaim_IsThatOfTheNewestRunThatTried(t *testing.T) {
	all := runs{
		onGPU(8, "1 x NVIDIA A100", report.Check{Name: "ras-counts", Status: report.Shown}, report.Check{Name: "loaded", Status: report.Shown}),
		onGPU(9, "1 x NVIDIA H200", report.Check{Name: "ras-counts", Status: report.NotShown}, report.Check{Name: "loaded", Status: report.Failed}),
	}
	assert.Equal(t, "NVIDIA H200: 0 of 2 shown, 1 failed", all.claim("nccl", ""))
	assert.Equal(t, "NVIDIA A100: 1 of 1 shown", all.claim("nccl", "ras-*"))
	assert.Equal(t, none, all.claim("cupti", ""))
}

func TestClaims_ReplaceCells(t *testing.T) {
	all := runs{onGPU(8, "1 x NVIDIA A100", report.Check{Name: "ras-counts", Status: report.Shown})}
	text, err := all.claims("| a | <!-- gpu:nccl/*ras* -->not yet |\n| b | <!-- gpu:cupti -->old: 3 of 3 checks |\n| c | |\n")
	require.NoError(t, err)
	assert.Equal(t, "| a | <!-- gpu:nccl/*ras* -->NVIDIA A100: 1 of 1 shown |\n| b | <!-- gpu:cupti -->not yet |\n| c | |\n", text)
	_, err = all.claims("nothing")
	assert.ErrorContains(t, err, "find the claims")
}

func TestDocument(t *testing.T) {
	all := runs{onGPU(8, "1 x NVIDIA A100", report.Check{Name: "ras", Status: report.Shown, Text: "a|b", Figures: []report.Figure{{Name: "count", Value: 3, Unit: "1"}}})}
	text, err := all.document("head\n" + begin + "old\n" + end + "tail\n")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(text, "head\n") && strings.HasSuffix(text, "tail\n"))
	assert.Contains(t, text, "### NVIDIA A100, 1 December 2026")
	assert.Contains(t, text, "| nccl | `ras` | shown on the GPU | a\\|b; count 3 |")
	assert.NotContains(t, text, "old")
	assert.NotContains(t, text, "did not come to")
	assert.NotContains(t, text, "Not asked for")
	_, err = all.document("no marks")
	assert.ErrorContains(t, err, "find the part to write")
}

func TestDocument_NamesPartsThatDidNotRun(t *testing.T) {
	r := onGPU(8, "1 x NVIDIA A100", report.Check{Name: "ras", Status: report.Shown})
	r.NotRun, r.LeftOut = []string{"hangs", "a|b"}, []string{"cupti", "node"}
	text, err := runs{r}.document(begin + end)
	require.NoError(t, err)
	assert.Contains(t, text, "\n\n**The run did not come to: hangs, a\\|b.**\n\n")
	assert.Contains(t, text, "\n\nNot asked for (-only): cupti, node.\n\n")
}

func TestDocument_NamesStayInTheirCells(t *testing.T) {
	r := onGPU(8, "1 x NVIDIA A100", report.Check{Name: "a|b", Status: report.Shown, Text: "equal"})
	r.Parts[0].Name = "c|<i>"
	r.Machine[1].Value = "580<b>"
	text, err := runs{r}.document(begin + end)
	require.NoError(t, err)
	assert.Contains(t, text, "\n| c\\|&lt;i> | `a\\|b` | shown on the GPU | equal |\n")
	assert.Contains(t, text, "driver 580&lt;b>")
}
