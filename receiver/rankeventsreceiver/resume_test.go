// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
)

// resumes returns what ranks said that they loaded.
func (b *bench) resumes(t *testing.T) (out []model.Resume) {
	t.Helper()
	for _, ld := range b.events.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				v, ok, err := resumemap.FromLog(rl.Resource(), lr)
				require.NoError(t, err)
				if ok {
					out = append(out, v)
				}
			}
		}
	}
	return out
}

// fingerprints returns what their parameters hashed to.
func (b *bench) fingerprints(t *testing.T) (out []model.Fingerprint) {
	t.Helper()
	for _, ld := range b.events.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
				v, ok, err := resumemap.FingerprintFromLog(rl.Resource(), lr)
				require.NoError(t, err)
				if ok {
					out = append(out, v)
				}
			}
		}
	}
	return out
}

// What ranks have loaded is known while they live, and before they have gone far.
func TestResumesOfALiveJob(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	b := start(t, cfg, nil)
	j := startJob(t, dir, 2, 3, "hang", "RESUMED=41")
	require.Eventually(t, func() bool { return len(b.resumes(t)) >= 2 && len(b.fingerprints(t)) >= 2 }, patience, cfg.PollInterval)
	seen := map[int64]bool{}
	for _, v := range b.resumes(t) {
		seen[v.Rank.Rank] = true
		assert.Equal(t, []any{"job-7", model.Some(int64(j.ranks[v.Rank.Rank].Process.Pid)), model.Some(int64(2))}, []any{v.Rank.JobID, v.Rank.PID, v.Rank.WorldSize})
		assert.Equal(t, model.Incarnation(model.World{CommHash: "0xabcdef0123456789"}), v.Rank.Incarnation)
		assert.Equal(t, []any{int64(1), int64(41), "7", "dp 0", "", false}, []any{v.Number, v.Step, v.DataCursor, v.Replica, v.RNGDigest, v.OptimizerStep.OK})
		assert.NotEmpty(t, v.Life)
	}
	assert.Len(t, seen, 2)
	for _, v := range b.fingerprints(t) {
		assert.Equal(t, []any{int64(42), uint64(0xabc), int64(0), int64(100), "dp", int64(2)}, []any{v.Step, v.Hash, v.Start, v.Total, v.Group, v.Replicas})
		assert.Equal(t, "job-7", v.Rank.JobID)
	}
	b.stop()
	assert.Len(t, b.fingerprints(t), 2)
	assert.Len(t, b.resumes(t), 2, "once, within resume_interval")
	assert.Zero(t, b.counter(t, "oddities", "not_mapped"))
}
