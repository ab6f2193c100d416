// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFind_SharedFoldersAbsent_AreSkippedAndSaid(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("testdata/hangs/stuck/dumps/rank_0", "dump")
	write("testdata/hangs/stuck/seen.json", `{"written": {"0": 1795418300322979613}}`)
	write("testdata/recordings/slow/rank0.json.gz", "trace")
	require.NoError(t, os.Mkdir(filepath.Join(root, "internal"), 0o750))
	write("testdata/notes.bin", "nothing reads this")
	t.Setenv(envData, filepath.Join(root, "no-data"))
	t.Setenv(envCases, filepath.Join(root, "no-cases"))
	c := &comparison{o: &options{only: regexp.MustCompile("")}, head: &revision{tree: root}, work: t.TempDir()}

	found, err := c.find(t.Context())

	require.NoError(t, err)
	kinds := map[string]kind{}
	for _, p := range found {
		kinds[p.name] = p.kind
	}
	assert.Equal(t, kindTraces, kinds["testdata/recordings/slow"])
	assert.Equal(t, kindDumps, kinds["testdata/hangs/stuck/dumps"])
	require.Len(t, c.counts.skipped, 2)
	assert.Contains(t, c.counts.skipped[0], "no-cases")
	assert.Contains(t, c.counts.skipped[1], "LOCKSTEP_DATA names another folder")
	assert.Equal(t, []string{"testdata/hangs/stuck/seen.json", "testdata/notes.bin"}, c.counts.unread)
	for _, p := range found {
		if p.name == "testdata/hangs/stuck/dumps" {
			assert.EqualValues(t, 1795418300322979613, newest(p.path).UnixNano(), "the dump has its time again")
		}
	}
}

// Every configuration is one that a collector takes: a part that is missing or two that do not
// fit show as an error of the collector in what is compared, which both revisions would share.
func TestCases_EachKind_HasAConfiguration(t *testing.T) {
	for _, k := range cases(places{
		{kind: kindTraces},
		{kind: kindTraces, job: "feed"},
		{kind: kindTraces, job: "feed", annotated: true},
		{kind: kindDumps},
		{kind: kindCheckpoints},
		{kind: kindSpans},
		{kind: kindFeed},
	}) {
		assert.Contains(t, configurations, k.configuration)
		assert.NotEmpty(t, k.lives)
	}
}

func TestToldFeeds_AreInOrderOfTime(t *testing.T) {
	made, err := toldFeeds(t.TempDir())
	require.NoError(t, err)
	require.Len(t, made, len(told))

	for _, p := range made {
		text, err := os.ReadFile(p.path)
		require.NoError(t, err)
		last, lines := 0.0, 0
		for line := range strings.Lines(string(text)) {
			var l struct {
				After  float64         `json:"after_seconds"`
				Signal string          `json:"signal"`
				Data   json.RawMessage `json:"data"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &l), p.name)
			assert.GreaterOrEqual(t, l.After, last, p.name)
			assert.Contains(t, []string{"logs", "traces"}, l.Signal)
			assert.NotEmpty(t, l.Data)
			last = l.After
			lines++
		}
		assert.Greater(t, lines, 2, p.name)
	}
}
