// SPDX-License-Identifier: Apache-2.0

package sequencemap

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// steps returns a batch of one rank: operations of some steps, each with a span that has no step.
func steps(job string, numbers ...int64) ptrace.Traces {
	rank := model.Rank{JobID: job, Incarnation: "inc", Rank: 1}
	var ops []model.Op
	for _, step := range numbers {
		ops = append(ops,
			model.Op{Kind: model.KindCompute, Name: "gemm", Start: 1, End: 2, Step: model.Some(step)},
			model.Op{Kind: model.KindStep, Name: "step", Start: 1, End: 2, Step: model.Some(step)},
			model.Op{Kind: model.KindHost, Name: "host", Start: 1, End: 2},
		)
	}
	return otelmap.OpsToTraces(&rank, ops)
}

func of(job string, step int64) sequence.Step {
	return sequence.Step{Job: job, Incarnation: "inc", Step: step}
}

func TestNumber_Read_HasTheNumbersBySteps(t *testing.T) {
	n := sequence.NewNumberer("p", 8)
	Number(steps("a", 1), n)
	td := steps("a", 4, 5)
	steps("b", 4).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	given := Number(td, n)
	assert.Equal(t, []sequence.Numbers{{Source: "p-0", First: 3, Count: 6}, {Source: "p-1", First: 0, Count: 3}}, given)
	all, unread := Read(td)
	assert.Zero(t, unread)
	assert.Equal(t, []sequence.Arrival{
		{Source: "p-0", Steps: map[sequence.Step]sequence.Ranges{of("a", 4): {{First: 3, Last: 4}}, of("a", 5): {{First: 6, Last: 7}}}, Loose: sequence.Ranges{{First: 5, Last: 5}, {First: 8, Last: 8}}},
		{Source: "p-1", Steps: map[sequence.Step]sequence.Ranges{of("b", 4): {{First: 0, Last: 1}}}, Loose: sequence.Ranges{{First: 2, Last: 2}}},
	}, all)
}

// Exporters divide resources and join them, in any order: each span has its own number.
func TestRead_DividedAndJoined_AddsUp(t *testing.T) {
	td := steps("a", 4, 5, 6)
	Number(td, sequence.NewNumberer("p", 8))
	whole, _ := Read(td)
	divided := ptrace.NewTraces()
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for i := range ss.Spans().Len() {
				to := divided.ResourceSpans().AppendEmpty()
				rs.Resource().CopyTo(to.Resource())
				ss.Spans().At(ss.Spans().Len() - 1 - i).CopyTo(to.ScopeSpans().AppendEmpty().Spans().AppendEmpty())
			}
		}
	}
	got, unread := Read(divided)
	assert.Zero(t, unread)
	assert.Equal(t, whole, got)
}

func TestNumber_NumberedByAnotherAgent_StaysAsItIs(t *testing.T) {
	td := steps("a", 4)
	Number(td, sequence.NewNumberer("p", 8))
	before, _ := Read(td)
	assert.Empty(t, Number(td, sequence.NewNumberer("q", 8)))
	after, _ := Read(td)
	assert.Equal(t, before, after)
}

func TestNumber_Refused_VoidIsRead(t *testing.T) {
	n := sequence.NewNumberer("p", 8)
	given := Number(steps("a", 4), n)
	n.Refuse(given[0])
	td := steps("a", 4)
	Number(td, n)
	all, unread := Read(td)
	assert.Zero(t, unread)
	require.Len(t, all, 1)
	assert.Equal(t, sequence.Ranges{{First: 0, Last: 2}}, all[0].Void)
	assert.Equal(t, sequence.Ranges{{First: 3, Last: 4}}, all[0].Steps[of("a", 4)])
}

func TestRead_WhatNoAgentWrites_IsCounted(t *testing.T) {
	for name, change := range map[string]func(ptrace.ResourceSpans){
		"a source that is no text": func(rs ptrace.ResourceSpans) { rs.Resource().Attributes().PutInt(semconv.SequenceSource, 1) },
		"a long source": func(rs ptrace.ResourceSpans) {
			rs.Resource().Attributes().PutStr(semconv.SequenceSource, strings.Repeat("x", 65))
		},
		"a source that is no UTF-8": func(rs ptrace.ResourceSpans) { rs.Resource().Attributes().PutStr(semconv.SequenceSource, "\xff") },
		"void that is no list":      func(rs ptrace.ResourceSpans) { rs.Resource().Attributes().PutStr(semconv.SequenceVoid, "1") },
		"half a range": func(rs ptrace.ResourceSpans) {
			rs.Resource().Attributes().PutEmptySlice(semconv.SequenceVoid).AppendEmpty().SetInt(1)
		},
		"a range backwards": func(rs ptrace.ResourceSpans) {
			void := rs.Resource().Attributes().PutEmptySlice(semconv.SequenceVoid)
			void.AppendEmpty().SetInt(2)
			void.AppendEmpty().SetInt(1)
		},
		"a number below 0": func(rs ptrace.ResourceSpans) {
			rs.ScopeSpans().At(0).Spans().At(0).Attributes().PutInt(semconv.SequenceNumber, -1)
		},
		"a number that is none": func(rs ptrace.ResourceSpans) {
			rs.ScopeSpans().At(0).Spans().At(0).Attributes().PutStr(semconv.SequenceNumber, "1")
		},
	} {
		td := steps("a", 4)
		Number(td, sequence.NewNumberer("p", 8))
		change(td.ResourceSpans().At(0))
		_, unread := Read(td)
		assert.Equal(t, 1, unread, name)
	}
	all, unread := Read(steps("a", 4))
	assert.Empty(t, all, "spans without numbers")
	assert.Zero(t, unread)
}

func TestRead_StepThatNoLedgerKeeps_IsOfNoStep(t *testing.T) {
	for name, td := range map[string]ptrace.Traces{
		"a great step":                 steps("a", math.MaxInt64),
		"a small step":                 steps("a", math.MinInt64),
		"a job whose name is no UTF-8": steps("\xff", 4),
	} {
		Number(td, sequence.NewNumberer("p", 8))
		all, unread := Read(td)
		assert.Zero(t, unread, name)
		assert.Equal(t, []sequence.Arrival{{Source: "p-0", Loose: sequence.Ranges{{First: 0, Last: 2}}}}, all, name)
	}
}

func TestWriteLoss_EachReason_IsASentence(t *testing.T) {
	for reason, want := range map[string]string{
		sequence.ReasonRestart:   "job a: 12 spans of steps 4 to 6 were lost when the gateway ended",
		sequence.ReasonGap:       "job a: 12 spans did not arrive, though later ones of the same agent did",
		sequence.ReasonUncertain: "job a: the gateway ended while it sent step traces of steps 4 to 6: their 12 spans are lost unless the traces are there",
	} {
		lr := plog.NewLogRecord()
		WriteLoss(&sequence.Loss{Step: of("a", 4), Last: 6, Spans: 12, Reason: reason}, time.Unix(7, 0), lr)
		assert.Equal(t, want, lr.Body().Str())
		assert.Equal(t, semconv.EventStepsLost, lr.EventName())
		_, known := lr.Attributes().Get(semconv.StepsLostFirst)
		assert.Equal(t, reason != sequence.ReasonGap, known)
	}
}

// Whatever spans come, what is read of them is numbers that a ledger can keep.
func FuzzRead(f *testing.F) {
	td := steps("a", 4, 5)
	Number(td, sequence.NewNumberer("p", 8))
	seed, err := (&ptrace.JSONMarshaler{}).MarshalTraces(td)
	require.NoError(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(data)
		if err != nil {
			return
		}
		all, _ := Read(td)
		l, err := sequence.NewLedger(sequence.Config{Wait: time.Second, StepLimit: time.Hour, StreamLimit: time.Hour, MaxStreams: 4, MaxJobs: 4, MaxOpen: 16, MaxRanges: 8}, nil, time.Unix(0, 0))
		require.NoError(t, err)
		l.Expect(all)
		require.NoError(t, l.Arrive(all, time.Unix(0, 0)))
		require.NoError(t, l.Tick(time.Unix(9, 0)))
		got := l.Totals()
		require.Equal(t, got.Arrived, got.Concluded+got.Loose+got.Lost+got.Uncertain+got.Forgotten+l.Open())
		require.LessOrEqual(t, got.Arrived+got.Again, int64(td.SpanCount()))
	})
}

func BenchmarkNumberAndRead(b *testing.B) {
	n := sequence.NewNumberer("p", 8)
	numbers := make([]int64, 300)
	for b.Loop() {
		b.StopTimer()
		td := steps("a", numbers...)
		b.StartTimer()
		Number(td, n)
		Read(td)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/900, "ns/span")
}
