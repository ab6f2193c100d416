// SPDX-License-Identifier: Apache-2.0

package stepmap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/stragglertest"
)

func TestTell(t *testing.T) {
	teller := NewTeller(2000, 1000, stragglertest.Now)
	reports, findings := stragglertest.SlowRank2(t, teller.Keep)
	td := teller.Tell(reports[5], findings)
	spans := spansOf(td)

	trace := model.StepTraceID("inc", 5)
	root := spans[-1]["step"]
	assert.Equal(t, pcommon.SpanID(model.RootSpanID(trace)), root.SpanID())
	assert.Equal(t, int64(2000), attr(t, root, "lockstep.story.limit"))
	assert.Equal(t, int64(3), attr(t, root, "lockstep.story.omitted"), "the kernels of ranks 0, 1 and 3")
	for r := range int64(4) {
		assert.Equal(t, root.SpanID(), spans[r]["step"].ParentSpanID())
		assert.Equal(t, spans[r]["step"].SpanID(), spans[r]["all_reduce"].ParentSpanID())
	}
	assert.Contains(t, spans[2], "gemm", "what the late rank did")
	assert.NotContains(t, spans[0], "gemm")
	assert.Equal(t, spans[2]["all_reduce"].SpanID(), spans[0]["all_reduce"].Links().At(0).SpanID())
	assert.Equal(t, "compute", attr(t, spans[2]["step"], "lockstep.straggler.class"))
	assert.Equal(t, 1+4+4+1, td.SpanCount())
}

func TestDuplicatesAreToldOnce(t *testing.T) {
	teller := NewTeller(2000, 1000, stragglertest.Now)
	reports, findings := stragglertest.SlowRank2(t, func(r *model.Rank, ops []model.Op) { teller.Keep(r, ops); teller.Keep(r, ops) })
	assert.Equal(t, 10, teller.Tell(reports[5], findings).SpanCount())
}

// What could not be kept is missing from the story and counted as left out.
func TestTellerIsBounded(t *testing.T) {
	teller := NewTeller(2000, 2, stragglertest.Now)
	reports, _ := stragglertest.SlowRank2(t, teller.Keep)
	assert.Equal(t, int64(6*4*3-2), teller.Dropped())
	td := teller.Tell(reports[5], nil)
	root := spansOf(td)[-1]["step"]
	assert.Equal(t, 1+4, td.SpanCount(), "the steps are known from the report")
	assert.Equal(t, int64(8), attr(t, root, "lockstep.story.omitted"))
}

func TestTellForgets(t *testing.T) {
	teller := NewTeller(2000, 1000, stragglertest.Now)
	reports, _ := stragglertest.SlowRank2(t, teller.Keep)
	require.Equal(t, 6*4*3, teller.held)
	for _, rep := range reports {
		teller.Tell(rep, nil)
	}
	assert.Zero(t, teller.held)
	assert.Zero(t, teller.steps.Len())
}

func TestPruneDropsWhatIsNeverReported(t *testing.T) {
	at := stragglertest.Start
	teller := NewTeller(2000, 1000, func() time.Time { return at })
	rank := stragglertest.Rank(0)
	teller.Keep(&rank, stragglertest.Ops(1, 10))
	at = stragglertest.Start.Add(time.Minute)
	teller.Keep(&rank, stragglertest.Ops(2, 10))
	teller.Prune(stragglertest.Start.Add(time.Second))
	assert.Equal(t, 1, teller.steps.Len())
	assert.Equal(t, int64(3), teller.Dropped())
	assert.Equal(t, 3, teller.held)
}

func TestTheLongestAreKept(t *testing.T) {
	r := &heldRank{}
	for i, d := range []int64{3, 9, 1, 5, 9, 2, 7} {
		r.keepLongest(&model.Op{Seq: int64(i), End: d})
	}
	require.Len(t, r.longest, longestKept)
	assert.Equal(t, []int64{9, 9, 7}, []int64{r.longest[0].End, r.longest[1].End, r.longest[2].End})
}
