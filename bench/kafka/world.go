// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/bench/internal/broker"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/sim/training"
)

const (
	ranks, perNode = 64, 8
	// stepsPerRequest make requests of about 3 MB a node, within what an agent's queue joins (1 MB to 4 MB).
	stepsPerRequest = 5
	seed            = 1
	partitions      = broker.Partitions
)

// layouts are those of the jobs: data, pipeline and tensor parallel, and with sharded parameters.
var layouts = []training.Layout{
	{DP: 4, PP: 4, TP: 4, Microbatches: 8, Layers: 1, Scale: 0.5, Coarse: true, PerNode: perNode},
	{DP: ranks, FSDP: true, PerNode: perNode},
}

// world is the requests that agents send, as OTLP: in this form the garbage collector need not look at them.
type world struct {
	requests [][]byte
	spans    int
	ids      map[spanID]struct{}
}

// spanID is the ids of a trace and a span.
type spanID struct {
	trace [16]byte
	span  [8]byte
}

// newWorld simulates so many steps of each job. Of each node a request has some steps of its ranks, as the
// receiver torch_trace emits them; requests of all nodes and jobs come in turn.
func newWorld(steps int) (*world, error) {
	var jobs []*training.Job
	for i, layout := range layouts {
		job, err := training.New(training.Spec{Name: fmt.Sprint("job-", i), Layout: layout, Noise: training.DefaultNoise(), Steps: steps}, seed)
		if err != nil {
			return nil, fmt.Errorf("make job %d: %w", i, err)
		}
		jobs = append(jobs, job)
	}
	w := &world{ids: map[spanID]struct{}{}}
	for range steps / stepsPerRequest {
		for _, job := range jobs {
			nodes := make([]ptrace.Traces, ranks/perNode)
			for i := range nodes {
				nodes[i] = ptrace.NewTraces()
			}
			for range stepsPerRequest {
				step, ok := job.Next()
				if !ok {
					return nil, fmt.Errorf("simulate %d steps: the job has ended", steps)
				}
				for rank, r := range job.Ranks() {
					otelmap.AppendOps(nodes[rank/perNode], &r, step.Ops(rank))
				}
			}
			for _, td := range nodes {
				if err := w.add(td); err != nil {
					return nil, err
				}
			}
		}
	}
	return w, nil
}

// stepOf returns one step of a job, as one request.
func stepOf(layout training.Layout) (*world, error) {
	job, err := training.New(training.Spec{Name: "step", Layout: layout, Noise: training.DefaultNoise(), Steps: 1}, seed)
	if err != nil {
		return nil, fmt.Errorf("make a job of one step: %w", err)
	}
	step, _ := job.Next()
	td := ptrace.NewTraces()
	for rank, r := range job.Ranks() {
		otelmap.AppendOps(td, &r, step.Ops(rank))
	}
	w := &world{ids: map[spanID]struct{}{}}
	return w, w.add(td)
}

// add adds a request.
func (w *world) add(td ptrace.Traces) error {
	var m ptrace.ProtoMarshaler
	request, err := m.MarshalTraces(td)
	if err != nil {
		return fmt.Errorf("marshal a request: %w", err)
	}
	w.requests = append(w.requests, request)
	w.spans += td.SpanCount()
	each(td, func(s ptrace.Span) { w.ids[spanID{s.TraceID(), s.SpanID()}] = struct{}{} })
	if len(w.ids) != w.spans {
		return fmt.Errorf("make spans: got %d ids of %d spans; want each once", len(w.ids), w.spans)
	}
	return nil
}

// bytes returns the size of all requests.
func (w *world) bytes() (n int) {
	for _, r := range w.requests {
		n += len(r)
	}
	return n
}

func each(td ptrace.Traces, call func(ptrace.Span)) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				call(s)
			}
		}
	}
}

// collectiveOf returns the rendezvous of an operation.
func collectiveOf(r *model.Rank, op *model.Op) (string, bool) {
	k, ok := model.Rendezvous(r, op)
	if !ok {
		return "", false
	}
	return string(k.Append(nil)), true
}
