// SPDX-License-Identifier: Apache-2.0

package ckpt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ckptsim"
)

// The records of those who commit saves together (docs/format/commit.md) lie beside the saves, and are
// no part of them.
func TestRecordsOfCommitsAreNoPartOfASave(t *testing.T) {
	for _, job := range ckptsim.Jobs() {
		t.Run(job.Name, func(t *testing.T) {
			t.Parallel() // they mostly wait for the clock of the file system
			dir := saves(t, job.Name, 100, 200)
			want := judgeDir(t, dir)
			records := filepath.Join(dir, ".lockstep-commit")
			require.NoError(t, os.Mkdir(records, 0o755))
			for _, name := range []string{"rank 0.json", "rank 0.json.lock", "rank 0.json.new"} {
				require.NoError(t, os.WriteFile(filepath.Join(records, name), []byte(`{"version": 1, "slots": [{"epoch": 100}]}`), 0o644))
			}
			got := judgeDir(t, dir)
			assert.Equal(t, []any{want.Verdict, want.Epoch, want.Why}, []any{got.Verdict, got.Epoch, got.Why})
			assert.Len(t, got.Saves, len(want.Saves))
			assert.Len(t, got.Problems, len(want.Problems), "%v", got.Problems)
		})
	}
}
