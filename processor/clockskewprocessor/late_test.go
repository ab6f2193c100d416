// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestALateExporter: on the same two hosts, one program's spans come at once and those
// of another 30 s later, in more batches. What is late is of no use and does no harm:
// bounds are what they are without it.
func TestALateExporter(t *testing.T) {
	const (
		rounds = 60
		late   = 30
	)
	exporter := func(traces uint64, every int64) [][]ptrace.Traces {
		w := newWorld(1, 2, 10e6, 50)
		for n := range uint64(rounds * 1e9 / every) {
			at := base + int64(n)*every
			root := w.add(trueSpan{host: int(n % 2), trace: traces + n, kind: ptrace.SpanKindServer, attrs: rpcAttrs, begin: at})
			root.end = w.call(root, at+w.work(), 1)
		}
		w.together = true
		out := make([][]ptrace.Traces, rounds+late)
		for _, td := range w.batches(1e9 / 4) {
			first := int64(td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).StartTimestamp())
			second := min(max(0, (first-base)/1e9), rounds-1)
			out[second] = append(out[second], td)
		}
		return out
	}
	bounds := func(withLate bool) (widest float64, p *skew) {
		prompt, tardy := exporter(1, 100e6), exporter(1<<20, 10e6)
		sink := new(consumertest.TracesSink)
		p, err := newSkew(newDefaultConfig(), componenttest.NewNopTelemetrySettings(), sink)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
		t.Cleanup(func() { require.NoError(t, p.Shutdown(t.Context())) })
		for second := range rounds {
			if withLate && second >= late {
				for _, td := range tardy[second-late] {
					require.NoError(t, p.ConsumeTraces(t.Context(), td))
				}
			}
			sink.Reset()
			for _, td := range prompt[second] {
				require.NoError(t, p.ConsumeTraces(t.Context(), td))
			}
			for _, td := range sink.AllTraces() {
				for _, rs := range td.ResourceSpans().All() {
					for _, s := range rs.ScopeSpans().At(0).Spans().All() {
						if _, bound, ok := place(s); second > late && ok {
							widest = max(widest, bound)
						} else if second > late {
							t.Errorf("a span of second %d has no place", second)
						}
					}
				}
			}
		}
		return widest, p
	}
	alone, _ := bounds(false)
	beside, p := bounds(true)
	stats := p.engine.Stats().Evidence
	t.Logf("widest bound %.0f ns alone, %.0f ns beside the late one; %+v", alone, beside, stats)
	assert.LessOrEqual(t, beside, 1.01*alone)
	assert.Zero(t, stats.Liars)
	assert.Equal(t, stats.Samples-2*10*rounds, stats.Late, "all but the starts and ends of the prompt one's calls")
}
