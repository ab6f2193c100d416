// SPDX-License-Identifier: Apache-2.0

package stepmap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler/steptrace"
	"github.com/lockstep-otel/lockstep/internal/straggler/stragglertest"
)

func TestTraceOf_SlowRank_IsToldInFull(t *testing.T) {
	holder := steptrace.NewHolder(2000, 1000, stragglertest.Now)
	reports, findings := stragglertest.SlowRank2(t, holder.Keep)
	td := TraceOf(reports[5], findings, holder.Take(reports[5], findings))
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
