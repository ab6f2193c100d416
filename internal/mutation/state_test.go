// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestState_Reopened_HasWhatWasAdded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.jsonl")
	record := Record{Mutant: Mutant{File: "a.go", Line: 1, Kind: Drop}, Tests: "t", Quick: Alive, Full: Killed, By: "toy", Test: "TestA", Rules: rules}
	s, err := OpenState(path)
	require.NoError(t, err)
	require.NoError(t, s.add(entry{Mutant: &record}))
	old := record
	old.Tests, old.Rules = "t of other rules", rules-1
	require.NoError(t, s.add(entry{Mutant: &old}))
	require.NoError(t, s.add(entry{Baseline: &baseline{"toy", "t", "quick", 1.5}}))
	require.NoError(t, s.Close())

	s, err = OpenState(path)
	require.NoError(t, err)
	defer s.Close()

	got, ok := s.record(record.Mutant, "t")
	assert.True(t, ok)
	assert.Equal(t, record, got)
	_, ok = s.record(record.Mutant, "other tests")
	assert.False(t, ok)
	_, ok = s.record(record.Mutant, old.Tests)
	assert.False(t, ok, "judged by other rules")
	took, ok := s.baseline("toy", "t", Tier{Name: "quick"})
	assert.True(t, ok)
	assert.Equal(t, 1500*time.Millisecond, took)
	_, ok = s.baseline("toy", "t", Tier{Name: "full"})
	assert.False(t, ok)
}

func TestState_LastLineCutOff_IsDroppedAndOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.jsonl")
	first := `{"baseline":{"suite":"toy","tests":"t","tier":"quick","seconds":1}}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(first+`{"mutant":{"pack`), 0o600))

	s, err := OpenState(path)
	require.NoError(t, err)
	require.NoError(t, s.add(entry{Baseline: &baseline{"toy", "t", "full", 2}}))
	require.NoError(t, s.Close())

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, first+`{"baseline":{"suite":"toy","tests":"t","tier":"full","seconds":2}}`+"\n", string(text))
}

func TestOpenState_OtherText_NamesLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("{}\nnot JSON\n"), 0o600))

	_, err := OpenState(path)

	require.ErrorContains(t, err, path+", line 2")
}
