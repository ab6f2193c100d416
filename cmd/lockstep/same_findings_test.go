// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

// described is a job of which only operation spans are known: eight ranks on two hosts,
// of which each step loads data, computes in four layers and reduces after each.
type described struct {
	steps int64
	// extra is what a rank's step has too much, ns: of loading data, and of each gemm.
	extra func(rank, step int64) (load, gemm int64)
}

const describedRanks, describedLayers = 8, 4

// file writes the job as the file exporter does, a rank's step a line, and returns its path.
func (d described) file(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	random := rand.New(rand.NewPCG(1, 2))
	start := firstStep
	for step := range d.steps {
		ops, end := d.step(step, start, random)
		for rank := range int64(describedRanks) {
			r := model.Rank{
				JobName: "described", JobID: "described", Incarnation: "fedcba9876543210", Rank: rank, WorldSize: model.Some(int64(describedRanks)),
				HostName: fmt.Sprintf("node%d", rank/4), ClockID: fmt.Sprintf("host:node%d/boot/raw", rank/4),
			}
			b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(otelmap.OpsToTraces(&r, ops[rank]))
			require.NoError(t, err)
			out.Write(append(b, '\n'))
		}
		start = end
	}
	path := filepath.Join(t.TempDir(), "job.json")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// step returns the operations of all ranks, and when the step ends.
func (d described) step(step, start int64, random *rand.Rand) (ops [describedRanks][]model.Op, end int64) {
	var at [describedRanks]int64
	noisy := func(ns int64) int64 { return int64(float64(ns) * (1 + 0.01*random.NormFloat64())) }
	add := func(rank int64, op model.Op, until int64) {
		op.Start, op.End, op.Step = at[rank], until, model.Some(step)
		at[rank] = until
		ops[rank] = append(ops[rank], op)
	}
	for rank := range int64(describedRanks) {
		at[rank] = start
		load, _ := d.extra(rank, step)
		add(rank, model.Op{Kind: model.KindScope, Name: "data_loading", ThreadID: model.Some(int64(1))}, start+noisy(ms)+load)
	}
	for layer := range int64(describedLayers) {
		var last int64
		for rank := range int64(describedRanks) {
			_, gemm := d.extra(rank, step)
			add(rank, model.Op{Kind: model.KindCompute, Name: "gemm", Seq: layer, Stream: model.Some(int64(7))}, at[rank]+noisy(4*ms)+gemm)
			last = max(last, at[rank])
		}
		for rank := range int64(describedRanks) {
			add(rank, model.Op{
				Kind: model.KindCollective, Name: "all_reduce", Seq: layer, Stream: model.Some(int64(20)),
				Comm:       model.Comm{ID: "world", Size: model.Some(int64(describedRanks))},
				Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(step*describedLayers + layer), SeqScope: model.ScopeComm, Bytes: model.Some(int64(1 << 20))},
			}, last+ms/2)
		}
		end = last + ms/2
	}
	for rank := range int64(describedRanks) {
		at[rank] = start
		add(rank, model.Op{Kind: model.KindStep, Name: "step"}, end)
	}
	return ops, end
}

// A job that only operation spans describe, in an OTLP JSON file, is judged alike by
// `lockstep analyze` and by the collector that is sent the file's lines.
func TestFindingsAreTheSameThroughTheCollector(t *testing.T) {
	none := func(int64, int64) (int64, int64) { return 0, 0 }
	for name, tc := range map[string]struct {
		job   described
		class string // of the first finding; "" where there is none
		rank  int64
	}{
		"healthy": {described{20, none}, "", 0},
		"slow device": {described{20, func(rank, _ int64) (int64, int64) {
			if rank == 5 {
				return 0, 2 * ms
			}
			return 0, 0
		}}, model.ClassCompute, 5},
		"slow loader": {described{20, func(rank, _ int64) (int64, int64) {
			if rank == 3 {
				return 6 * ms, 0
			}
			return 0, 0
		}}, model.ClassHost, 3},
		"more steps than the window": {described{90, func(rank, _ int64) (int64, int64) {
			if rank == 2 {
				return 0, ms
			}
			return 0, 0
		}}, model.ClassCompute, 2},
	} {
		t.Run(name, func(t *testing.T) {
			status, fromFile := sameFindings(t, tc.job.file(t), describedRanks)
			if tc.class == "" {
				assert.Equal(t, exitNothing, status)
				assert.Empty(t, fromFile.Findings)
				return
			}
			require.NotEmpty(t, fromFile.Findings)
			assert.Equal(t, tc.class, fromFile.Findings[0]["lockstep.finding.class"])
			assert.EqualValues(t, tc.rank, fromFile.Findings[0]["lockstep.finding.rank"])
		})
	}
}

// Jobs that are simulated are judged alike, too, whatever the place of the finding is.
func TestSimulatedFindingsAreTheSameThroughTheCollector(t *testing.T) {
	for family, tc := range map[string]struct {
		layout   training.Layout
		severity float64 // clear, in the unit of the family
		class    string
	}{
		training.GPUClock:       {training.Layout{DP: 8}, 1.5, model.ClassCompute},
		training.HostDataLoader: {training.Layout{DP: 8}, 0.05, model.ClassHost},
		training.Node:           {training.Layout{DP: 16, PerNode: 4}, 1.5, model.ClassNode},
		training.KernelChoice:   {training.Layout{DP: 8}, 3, model.ClassKernelChoice},
		training.Stage:          {training.Layout{DP: 4, PP: 2, Microbatches: 4}, 0.5, model.ClassStageImbalance},
	} {
		t.Run(family, func(t *testing.T) {
			tc.layout.Layers, tc.layout.Coarse = 2, true
			job, err := training.New(training.Spec{
				Layout: tc.layout, Steps: 20, Noise: training.DefaultNoise(), Faults: []training.Fault{{Family: family, Severity: tc.severity}},
			}, 7)
			require.NoError(t, err)
			status, r := sameFindings(t, simulatedFile(t, job), len(job.Ranks()))
			assert.Equal(t, exitFindings, status)
			require.NotEmpty(t, r.Findings)
			assert.Equal(t, tc.class, r.Findings[0]["lockstep.finding.class"])
		})
	}
}

func simulatedFile(t *testing.T, job *training.Job) string {
	t.Helper()
	var out bytes.Buffer
	ranks := job.Ranks()
	for step, ok := job.Next(); ok; step, ok = job.Next() {
		for i := range ranks {
			b, err := (&ptrace.JSONMarshaler{}).MarshalTraces(otelmap.OpsToTraces(&ranks[i], step.Ops(i)))
			require.NoError(t, err)
			out.Write(append(b, '\n'))
		}
	}
	path := filepath.Join(t.TempDir(), "job.json")
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

// sameFindings judges a file in both ways and returns what analyze says.
func sameFindings(t *testing.T, path string, ranks int) (status int, fromFile result) {
	t.Helper()
	status, fromFile = analyzeJSON(t, path)
	fromCollector := collected(t, path, ranks)
	assert.Len(t, fromCollector, len(fromFile.Findings))
	for _, want := range fromFile.Findings {
		got := fromCollector[want["lockstep.finding.id"].(string)]
		require.NotNil(t, got, "no finding of this id: %v", want["body"])
		for _, key := range []string{"kind", "class", "cause", "rank", "ranks", "host", "op", "link", "step.first", "step.last"} {
			key = "lockstep.finding." + key
			assert.Equal(t, want[key], got[key], key)
		}
		for _, key := range []string{"cost.seconds", "cost.share", "wait_caused.seconds", "confidence"} {
			key = "lockstep.finding." + key
			if want[key] == nil {
				assert.Nil(t, got[key], key)
				continue
			}
			// What a replay of operations saves is the mean over the steps at which it was
			// asked, and the collector asks at each.
			assert.InEpsilon(t, want[key], got[key], 0.05, key)
		}
	}
	return status, fromFile
}

// collected returns the findings of a collector that is sent the lines of a file, by id,
// as they stand when it stops.
func collected(t *testing.T, path string, want int) map[string]map[string]any {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	seen := newTap()
	col, err := otelcol.NewCollector(settings([]string{"yaml:" + fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
connectors: {straggler: {}, findings: {}}
exporters: {debug: {verbosity: basic}}
service:
  telemetry: {logs: {level: error}, metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [straggler]}
    logs/raw: {receivers: [straggler], exporters: [findings]}
    logs: {receivers: [findings], exporters: [debug]}
`, address)}, seen))
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- col.Run(context.Background()) }()
	require.Eventually(t, func() bool { return col.GetState() == otelcol.StateRunning || len(done) > 0 }, time.Minute, time.Millisecond)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range bytes.Lines(content) {
		post(t, "http://"+address+"/v1/traces", line)
	}
	col.Shutdown()
	require.NoError(t, <-done)
	findings, _, ranks := seen.result()
	assert.Equal(t, want, ranks)
	out := map[string]map[string]any{}
	for i := range findings {
		b, err := json.Marshal(otelmap.FindingAttributes(&findings[i]))
		require.NoError(t, err)
		var like map[string]any
		require.NoError(t, json.Unmarshal(b, &like))
		out[findings[i].ID] = like
	}
	return out
}

func post(t *testing.T, url string, body []byte) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	said, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode, string(said))
}
