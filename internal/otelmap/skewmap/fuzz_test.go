// SPDX-License-Identifier: Apache-2.0

package skewmap

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// FuzzRun realigns whatever OTLP can say, twice: nothing ends the program, and no
// duration changes.
func FuzzRun(f *testing.F) {
	for _, td := range []func() (ptrace.Traces, ptrace.Span){
		ofRank,
		func() (ptrace.Traces, ptrace.Span) { return one(attrs{"host.id": "n"}, attrs{"rpc.system": "grpc"}) },
	} {
		seed, _ := td()
		f.Add([]byte(bytesOf(seed)))
	}
	clocks := &fakeClocks{of: map[string]fakeClock{
		"host:n/?/realtime": {offset: -1_500_000, bound: 2000, sigma: 5}, "host:a/b/raw": {offset: 1e12, bound: 3000, drift: 1e-5}, "": {offset: 7},
	}}
	f.Fuzz(func(t *testing.T, data []byte) {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(data)
		if err != nil {
			t.Skip()
		}
		durations := func(td ptrace.Traces) (out []uint64) {
			for _, rs := range td.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, s := range ss.Spans().All() {
						out = append(out, uint64(s.EndTimestamp()-s.StartTimestamp()))
					}
				}
			}
			return out
		}
		before := durations(td)
		clocks.run(td, true)
		require.Equal(t, before, durations(td))
		twice := copyOf(td)
		clocks.run(twice, true)
		require.Equal(t, before, durations(twice))
	})
}
