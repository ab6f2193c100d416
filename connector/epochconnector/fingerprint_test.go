// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
)

// hashed has the replicas of a group tell what a slice of their parameters hashes to.
func (r *rig) hashed(t *testing.T, step int64, hashes ...uint64) {
	t.Helper()
	ld := plog.NewLogs()
	for i, hash := range hashes {
		of := model.Rank{JobName: "llama", JobID: "job", Incarnation: "life", Rank: int64(i), HostName: fmt.Sprint("node", i), HWID: fmt.Sprint("GPU-", i)}
		resumemap.AppendFingerprints(ld, &of, []model.Fingerprint{{
			Time: time.Now().UnixNano(), Life: fmt.Sprint("process ", i), Step: step, Hash: hash, Start: 64, Total: 1000, Group: "dp", Replicas: int64(len(hashes)),
		}})
	}
	r.send(t, ld)
}

func TestReplicasThatDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.hashed(t, 100, 7, 7, 7)
		r.pass(t, 20*time.Second)
		assert.Empty(t, r.said(t))
		job := map[string]any{"lockstep.job.id": "job"}
		assert.InDelta(t, 0, r.point(t, "lockstep.replica.mixed", job), 0)
		r.hashed(t, 200, 10, 10, 11)
		r.pass(t, newDefaultConfig().CheckInterval)
		const mixed = "rank 2 on node2: epoch (mixed): replicas of group dp hold different parameters after step 200: from element 64 of 1000 on, 000000000000000a on 2 ranks, 000000000000000b on 1 rank (2); told by 3 of 3 ranks; its GPU is GPU-2 (confidence 1.00)"
		assert.Equal(t, []string{"open: " + mixed}, r.said(t))
		f, ok := otelmap.LogToFinding(r.logs.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0), nil)
		require.True(t, ok)
		assert.Equal(t, []any{"epoch", "mixed", "fingerprint", "node2", "GPU-2", model.Some[int64](2), []int64{2}, model.SeverityError},
			[]any{f.Kind, f.Class, f.Op, f.Host, f.HWID, f.Rank, f.Ranks, f.Severity})
		assert.Contains(t, f.Action, "GPU of the minority")
		r.pass(t, 20*time.Second)
		assert.InDelta(t, 1, r.point(t, "lockstep.replica.mixed", job), 0)
		r.hashed(t, 300, 9, 9, 9)
		r.pass(t, newDefaultConfig().CheckInterval)
		assert.Equal(t, []string{"open: " + mixed, "closed: " + mixed}, r.said(t))
		assert.EqualValues(t, 9, r.counter(t, "fingerprints"))
		r.stop(t)
	})
}

func TestOfTwoReplicasNobodyIsAccused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.hashed(t, 100, 7, 8)
		r.pass(t, newDefaultConfig().CheckInterval)
		said := r.said(t)
		require.Len(t, said, 1)
		assert.Contains(t, said[0], "who is wrong is not decided")
		f, ok := otelmap.LogToFinding(r.logs.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0), nil)
		require.True(t, ok)
		assert.Equal(t, []any{false, 0, "", ""}, []any{f.Rank.OK, len(f.Ranks), f.Host, f.HWID})
		ld := plog.NewLogs()
		ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName("lockstep.rank.fingerprint")
		r.send(t, ld)
		r.pass(t, time.Minute)
		assert.EqualValues(t, 1, r.counter(t, "unread"))
		r.stop(t)
	})
}
