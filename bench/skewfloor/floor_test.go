// SPDX-License-Identifier: Apache-2.0

package skewfloor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// made are two spans under two resources, with an attribute and an event each.
func made() ptrace.Traces {
	td := ptrace.NewTraces()
	for i := range 2 {
		s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetStartTimestamp(pcommon.Timestamp(1000 + i))
		s.SetEndTimestamp(2000)
		s.Attributes().PutStr("rpc.system", "grpc")
		s.Events().AppendEmpty().SetTimestamp(1500)
	}
	return td
}

// TestWrite: what is written is what was recorded, byte for byte.
func TestWrite(t *testing.T) {
	want := made()
	s := want.ResourceSpans().At(1).ScopeSpans().At(0).Spans().At(0)
	move(s, ^pcommon.Timestamp(499)) // back by 500
	m := s.Attributes()
	m.PutDouble("d", 1.5)
	m.PutStr("s", "text")
	m.PutInt("i", -3)
	m.PutBool("b", true)
	var f Floor
	f.Record(made(), want)
	got := made()
	f.Write(got)
	assert.Equal(t, 4, f.Attributes())
	assert.EqualValues(t, 501, s.StartTimestamp())
	assert.EqualValues(t, 1000, s.Events().At(0).Timestamp())
	marshal := &ptrace.ProtoMarshaler{}
	a, err := marshal.MarshalTraces(want)
	require.NoError(t, err)
	b, err := marshal.MarshalTraces(got)
	require.NoError(t, err)
	assert.Equal(t, a, b)
}
