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
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
)

// resumed has the ranks of one life of a job tell which steps they have loaded.
func (r *rig) resumed(t *testing.T, incarnation string, steps ...int64) {
	t.Helper()
	ld := plog.NewLogs()
	for rank, step := range steps {
		resumemap.Append(ld, &model.Resume{
			Rank: model.Rank{
				JobName: "llama", JobID: "job", Incarnation: incarnation, Rank: int64(rank), WorldSize: model.Some(int64(len(steps))),
				HostName: fmt.Sprint("node", rank), HWID: fmt.Sprint("GPU-", rank),
			},
			Time: time.Now().UnixNano(), Life: fmt.Sprint("process ", rank), Number: 1, Step: step,
		})
	}
	r.send(t, ld)
}

func TestRanksThatHaveLoadedDifferentStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.resumed(t, "life 1", 1200, 1200, 1100, 1200)
		r.pass(t, newDefaultConfig().CheckInterval)
		const mixed = "rank 2 on node2: epoch (mixed): ranks have loaded different states: step is 1200 on 3 ranks, 1100 on 1 rank (2); told by 4 of 4 ranks (confidence 1.00)"
		assert.Equal(t, []string{"open: " + mixed}, r.said(t), "with the next look")
		rl := r.logs.AllLogs()[0].ResourceLogs().At(0)
		f, ok := otelmap.LogToFinding(rl.ScopeLogs().At(0).LogRecords().At(0), nil)
		require.True(t, ok)
		assert.Equal(t, []any{"epoch", "mixed", "resume", "node2", "GPU-2", model.Some[int64](2), []int64{2}, model.Some[int64](1), model.SeverityError},
			[]any{f.Kind, f.Class, f.Op, f.Host, f.HWID, f.Rank, f.Ranks, f.RanksCount, f.Severity})
		incarnation, _ := rl.Resource().Attributes().Get("lockstep.job.incarnation")
		assert.Equal(t, "life 1", incarnation.AsString())
		assert.JSONEq(t, `{"fields":[{"name":"step","held":[{"value":"1200","count":3,"ranks":[0,1,3]},{"value":"1100","count":1,"ranks":[2]}],`+
			`"values":2,"told":4,"decided":true}],"fields_count":1,"ranks":4,"of":4,"minority_hosts":["node2"]}`, evidence.Encode(f.Evidence))
		r.pass(t, 20*time.Second)
		assert.InDelta(t, 1, r.point(t, "lockstep.resume.mixed", map[string]any{"lockstep.job.id": "job"}), 0)

		r.resumed(t, "life 2", 1200, 1200, 1200, 1200)
		r.pass(t, newDefaultConfig().CheckInterval)
		assert.Equal(t, []string{"open: " + mixed, "closed: " + mixed}, r.said(t))
		r.pass(t, 20*time.Second)
		assert.InDelta(t, 0, r.point(t, "lockstep.resume.mixed", map[string]any{"lockstep.job.id": "job"}), 0)
		assert.EqualValues(t, 8, r.counter(t, "resumes"))
		assert.Zero(t, r.counter(t, "resumes_overflowed"))
		assert.Zero(t, r.counter(t, "foreign_records"))
		assert.EqualValues(t, 1, r.counter(t, "findings_opened"))
		r.stop(t)
	})
}

func TestAnEvenSplitAccusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.resumed(t, "life", 7, 9)
		r.pass(t, newDefaultConfig().CheckInterval)
		assert.Equal(t, []string{
			"open: job job: epoch (mixed): ranks have loaded different states: step is 7 on 1 rank (0), 9 on 1 rank (1); told by 2 of 2 ranks; who is wrong is not decided (confidence 1.00)",
		}, r.said(t))
		f, ok := otelmap.LogToFinding(r.logs.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0), nil)
		require.True(t, ok)
		assert.Equal(t, []any{false, 0, false, "", ""}, []any{f.Rank.OK, len(f.Ranks), f.RanksCount.OK, f.Host, f.HWID})
		r.pass(t, newDefaultConfig().Resume.Silent)
		said := r.said(t)
		require.Len(t, said, 2)
		assert.Contains(t, said[1], "closed: ", "nobody tells of it any more")
		r.stop(t)
	})
}

func TestBadResumesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ld := plog.NewLogs()
		ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().SetEventName("lockstep.rank.resumed")
		r.send(t, ld)
		r.resumed(t, "life", 7, -1)
		r.pass(t, time.Minute)
		assert.EqualValues(t, 2, r.counter(t, "unread"))
		assert.EqualValues(t, 1, r.counter(t, "resumes"))
		assert.Empty(t, r.said(t))
		r.stop(t)
	})
}
