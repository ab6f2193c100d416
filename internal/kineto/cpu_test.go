// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const gloo1of2 = `"distributedInfo":{"backend":"gloo","rank":1,"world_size":2,"pg_config":[{"pg_name":"0","pg_desc":"default_pg","backend_config":"cpu:gloo","pg_size":2,"ranks":[0,1]}]}`

func glooRun(tid, ts int, nelems string) string {
	return x("user_annotation", "gloo:all_reduce", tid, ts, 5, `"Input Dims":[[`+nelems+`]],"Input type":["float"]`)
}

func glooLaunch(ts int, nelems string) string {
	return x("cpu_op", "c10d::allreduce_", 1, ts, 2, `"Input Dims":[[[`+nelems+`]],[]],"Input type":["TensorList",""]`)
}

// Two runs begin in the opposite order of their launches; the run at 50 was
// launched before the recording.
func TestGlooJoin(t *testing.T) {
	tr := parseText(t, "x.json", trace(gloo1of2,
		x("user_annotation", "ProfilerStep#0", 1, 90, 100, ""),
		glooRun(5, 50, "8"),
		glooLaunch(100, "8"), glooLaunch(110, "4"), glooLaunch(120, "8"),
		glooRun(5, 130, "4"), glooRun(6, 131, "8"), glooRun(5, 140, "8"),
	))
	ops := ofKind(tr, model.KindCollective)
	require.Len(t, ops, 4)
	var early model.Optional[int64]
	assert.Equal(t, early, ops[0].Launch)
	assert.False(t, ops[0].Step.OK)
	assert.False(t, ops[0].Collective.Seq.OK, "without a step there is nothing to count in")
	for i, want := range []struct{ launch, seq int64 }{{110, 1}, {100, 0}, {120, 2}} {
		assert.Equal(t, model.Some(want.launch*1000), ops[i+1].Launch)
		assert.Equal(t, model.Some(want.seq), ops[i+1].Collective.Seq)
		assert.Equal(t, model.ScopeOrdinal, ops[i+1].Collective.SeqScope)
	}
	assert.Equal(t, int64(1), tr.Stats().OutsideSteps)
}

// Of nested operators the outermost computes, whatever their order in the file;
// what lies in a launch of a collective belongs to it.
func TestOutermostOperators(t *testing.T) {
	tr := parseText(t, "x.json", trace(gloo1of2,
		x("cpu_op", "inner before outer", 1, 12, 3, ""),
		x("cpu_op", "outer", 1, 10, 10, ""),
		x("cpu_op", "inner", 1, 15, 5, ""),
		x("cpu_op", "c10d::allreduce_", 1, 30, 10, ""),
		x("cpu_op", "part of the launch", 1, 31, 2, ""),
		x("cpu_op", "other thread", 2, 11, 2, ""),
	))
	var names []string
	for _, op := range ofKind(tr, model.KindCompute) {
		names = append(names, op.Name)
		assert.True(t, op.ThreadID.OK)
		assert.False(t, op.Stream.OK)
	}
	assert.Equal(t, []string{"outer", "other thread"}, names)
}

func TestSeveralGroupsAreSaid(t *testing.T) {
	header := `"distributedInfo":{"rank":1,"world_size":4,"pg_config":"[{\"pg_name\":\"3\",\"pg_size\":2,\"ranks\":[0,1]},{\"pg_name\":\"0\",\"pg_desc\":\"default_pg\",\"pg_size\":4,\"ranks\":[0,1,2,3]}]"}`
	tr := parseText(t, "x.json", trace(header, glooLaunch(100, "8"), glooRun(5, 110, "8")))
	assert.Equal(t, "0", ofKind(tr, model.KindCollective)[0].Comm.ID)
	require.Len(t, tr.Problems(), 1)
	assert.Contains(t, tr.Problems()[0].What, `assume process group "0"`)
}
