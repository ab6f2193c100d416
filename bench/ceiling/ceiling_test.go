// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/bench/internal/recording"
)

const gatewayConfig = "../../distro/config/gateway.yaml"

func recorded(t *testing.T, ranks, steps int) *recording.Recording {
	t.Helper()
	r, err := recording.New(recording.Options{Ranks: ranks, Steps: steps, Batch: 1, Layout: "experts", Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// All requests of a small job go through the real components, and nothing of it is lost.
func TestRun_SmallJob_EachStageIsMeasured(t *testing.T) {
	cfg, err := readSettings(gatewayConfig)
	require.NoError(t, err)
	r := recorded(t, 16, leastSteps)
	assert.Equal(t, 2*leastSteps, r.Count, "a request for each node and step")
	for _, staged := range []bool{false, true} {
		m, err := run(t.Context(), cfg, r, staged)
		require.NoError(t, err)
		assert.EqualValues(t, r.Spans, m.counters["connector_desync_ops"])
		assert.Positive(t, m.total)
		assert.Positive(t, m.heap)
		assert.Equal(t, staged, m.times[mapping] > 0)
		assert.Equal(t, staged, m.times[decode] > 0)
	}
}

// Of 5 steps, a node sends 2, 2 and 1.
func TestRecord_SeveralStepsInARequest_TheLastHasTheRest(t *testing.T) {
	r, err := recording.New(recording.Options{Ranks: 16, Steps: 5, Batch: 2, Layout: "sharded", Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	in, err := newIntake(nil, false)
	require.NoError(t, err)
	var resources []int
	require.NoError(t, r.Each(func(packet []byte) error {
		td, err := in.decode(packet)
		resources = append(resources, td.ResourceSpans().Len())
		return err
	}))
	assert.Equal(t, []int{16, 16, 16, 16, 8, 8}, resources)
}

// A figure of a gateway that loses or does not judge what it gets is none.
func TestRun_SpansAreMissing_Fails(t *testing.T) {
	cfg, err := readSettings(gatewayConfig)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*recording.Recording)
		want   string
	}{
		"a request is lost": {func(r *recording.Recording) { r.Count-- }, "check connector_straggler_steps_analysed: got 2; want 3"},
		"too few steps":     {func(r *recording.Recording) { r.Count, r.Steps, r.Spans = 2, 1, r.Spans/leastSteps }, "check findings: got none of rank 5"},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, 16, leastSteps)
			c.change(r)
			_, err := run(t.Context(), cfg, r, false)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestCheck_CounterOfLoss_Fails(t *testing.T) {
	g := &gateway{sink: newSink()}
	g.sink.found = true
	m := &measure{counters: map[string]int64{"connector_straggler_late_ops": 7, "connector_straggler_steps_large": 1}}
	require.EqualError(t, g.check(m, &recording.Recording{}), "check connector_straggler_late_ops: got 7; want 0")
}

// The operations of a node have the stamps of the clock that its resource names.
func TestRecord_StampsAreOfTheNodesClock(t *testing.T) {
	r := recorded(t, 16, 1)
	in, err := newIntake(nil, false)
	require.NoError(t, err)
	spans := 0
	require.NoError(t, r.Each(func(packet []byte) error {
		td, err := in.decode(packet)
		require.NoError(t, err)
		spans += td.SpanCount()
		assert.Equal(t, recording.PerNode, td.ResourceSpans().Len())
		clock, _ := td.ResourceSpans().At(0).Resource().Attributes().Get("lockstep.clock.id")
		node := 0
		if clock.Str() != "host:node0000/boot/realtime" {
			assert.Equal(t, "host:node0001/boot/realtime", clock.Str())
			node = 1
		}
		first := firstStart(td) - r.From - recording.Offset(node)
		assert.Less(t, max(first, -first), int64(1e8), "within a step of the job's begin")
		return nil
	}))
	assert.Equal(t, r.Spans, spans)
	assert.EqualValues(t, -1_000_000, recording.Offset(0))
	assert.EqualValues(t, -895_271, recording.Offset(1))
}

func firstStart(td ptrace.Traces) int64 {
	return int64(td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).StartTimestamp())
}

func TestReadSettings_OtherPipeline_Fails(t *testing.T) {
	text, err := os.ReadFile(gatewayConfig)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	other := strings.Replace(string(text), "exporters: [straggler, desync]", "exporters: [straggler]", 1)
	require.NoError(t, os.WriteFile(path, []byte(other), 0o600))
	_, err = readSettings(path)
	require.ErrorContains(t, err, "check pipeline traces: got exporters [straggler]; want [straggler desync]")
	_, err = readSettings(path + ".no")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// 5 and 10 µs a span are 200,000 and 100,000 spans a second.
func TestCarried_CostGrows_NextLargerSizeCounts(t *testing.T) {
	rows := []row{{ranks: 8, total: 5000}, {ranks: 64, total: 10_000}}
	assert.Equal(t, 64, carried(rows, 100), "of 1,000 that the rate leaves, 64 were measured")
	assert.Equal(t, 10, carried(rows, 10_000), "10 ranks cost as 64 do")
	assert.Equal(t, 8, carried(rows, 20_000), "8 ranks cost as 8 do")
	assert.Equal(t, 4, carried(rows, 50_000))
	assert.Equal(t, "10: 64 ranks or more; 100: 64 ranks or more; 1000: 64 ranks or more; 10000: 10 ranks", carriedLine(rows))
}

func TestNewRow_StageTimes_StepTraceIsTakenOut(t *testing.T) {
	r := &recording.Recording{Ranks: 10, Steps: 2, Spans: 1000, Raw: 460_000, Packed: 33_000}
	staged := &measure{times: times{decode: 2e6, skew: 1e6, straggle: 4e6, desync: 5e5, stepTrace: 1e6, mapping: 3e5}}
	got := newRow(r, &measure{total: 7e6, heap: 20_480}, staged)
	assert.Equal(t, [len(columns)]float64{2000, 1000, 3000, 500, 1000}, got.stages)
	assert.InDelta(t, 7500, got.sum, 1e-9)
	assert.InDelta(t, 7000, got.total, 1e-9)
	assert.Equal(t, 50, got.opsPerStep)
	var out bytes.Buffer
	render(&out, []row{*got})
	assert.Contains(t, out.String(), "  10     500        1000        333    2000        1000  133    143           -          3333\n")
}

func TestParse_BadFlags_SayWhatIsAccepted(t *testing.T) {
	for args, want := range map[string]string{
		"-ranks 12":  `parse -ranks: got "12"; want multiples of 8 up to 32768`,
		"-ranks all": `parse -ranks: got "all"; want multiples of 8`,
		"-steps 2":   "parse -steps: got 2; want at least 3",
		"-batch 0":   "parse -batch: got 0; want at least 1",
		"more":       `parse flags: got argument "more"; want none`,
	} {
		_, err := parse(strings.Fields(args), &bytes.Buffer{})
		require.ErrorContains(t, err, want)
	}
	o, err := parse([]string{"-quick"}, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, []int{8, 64, 512}, o.ranks)
	_, err = recording.New(recording.Options{Ranks: 16, Steps: 3, Batch: 1, Layout: "other", Dir: t.TempDir()})
	require.EqualError(t, err, `make job: got layout "other"; want one of [experts sharded tensor]`)
}
