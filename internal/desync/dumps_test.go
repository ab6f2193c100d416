// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// Two hangs of a job of 16 ranks with tensor, pipeline, expert and data parallel groups, in
// which two ranks were made to fail: the log beside the dumps says which.
func TestPublishedDumps(t *testing.T) {
	for name, class := range map[string]string{
		"gpu_error_2nd": model.ClassCompletionLag, // devices stop, hosts go on
		"lock_gil_1st":  model.ClassNotScheduled,  // hosts stop, devices have nothing to do
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(testdata.Shared(t, "flight-recorder"), name)
			rep := concludeDir(t, dir)
			assert.Equal(t, desync.Hang, rep.Verdict)
			var accused []int64
			for _, r := range rep.Roots {
				assert.Equal(t, class, r.Finding.Class)
				accused = append(accused, r.Finding.Ranks...)
			}
			assert.ElementsMatch(t, faultyRanks(t, dir), accused)
			assert.Empty(t, rep.Absent)
		})
	}
}

func faultyRanks(t *testing.T, dir string) (ranks []int64) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(dir, "fault_injection.log"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`Rank (\d+), fault_type`).FindAllSubmatch(log, -1) {
		r, err := strconv.ParseInt(string(m[1]), 10, 64)
		require.NoError(t, err)
		ranks = append(ranks, r)
	}
	require.NotEmpty(t, ranks)
	return ranks
}

func concludeDir(t *testing.T, dir string) *desync.Report {
	t.Helper()
	a := desync.New(desync.NewDefaultConfig())
	files, err := filepath.Glob(filepath.Join(dir, "_dump_*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		rank, _, ok := flightrecorder.RankOf(f)
		require.True(t, ok, f)
		d, err := flightrecorder.ReadFile(f, flightrecorder.DefaultOptions())
		require.NoError(t, err)
		s := d.State(model.Rank{Rank: rank}, filepath.Base(f), flightrecorder.StateOptions{})
		a.Add(&s)
	}
	return a.Conclude(0)
}
