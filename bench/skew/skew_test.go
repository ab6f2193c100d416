// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/semconv"
)

var small = worldConfig{seed: 7, hosts: 8, traces: 2500, duration: 25 * second, offset: 10 * ms, drift: 50e-6, asymmetry: 10 * us}

// TestWorld: the made-up spans are possible, some of each kind are there, and the
// same seed makes the same ones.
func TestWorld(t *testing.T) {
	w := newWorld(small)
	assert.Equal(t, w.events, newWorld(small).events)
	kinds := map[string]int{}
	for i, e := range w.events {
		require.LessOrEqual(t, e.start, e.end)
		if e.parent < 0 {
			continue
		}
		p := w.events[e.parent]
		require.Less(t, e.parent, i)
		require.Equal(t, p.trace, e.trace)
		require.GreaterOrEqual(t, e.start, p.start, "a child starts after its parent")
		if !e.async && !p.failed {
			require.LessOrEqual(t, e.end, p.end, "and ends before it where that waits")
		}
		if e.host != p.host {
			require.GreaterOrEqual(t, e.start-p.start, 50*us, "messages take their time")
		}
		kinds[e.what+" "+e.kind.String()]++
		if e.async && e.start > p.end {
			kinds["after its parent"]++
		}
		if e.failed {
			kinds["failed"]++
		}
	}
	for _, k := range []string{
		"rpc Client", "rpc Server", "http Client", "http Server", "messaging Producer", "messaging Consumer", "job Internal",
		"work Internal", "after its parent", "failed",
	} {
		assert.Greater(t, kinds[k], 20, k)
	}
}

func TestClocks(t *testing.T) {
	h := host{offset: -3 * ms, drift: 50e-6}
	assert.Equal(t, epoch-3*ms, h.reads(0))
	assert.Equal(t, epoch+10*second-3*ms+500*us, h.reads(10*second))
}

// TestErrors: spans as they came are off by what their clock and their root's are
// apart; on right clocks by nothing.
func TestErrors(t *testing.T) {
	w := newWorld(small)
	for _, batches := range [][]ptrace.Traces{w.batches(), w.whole()} {
		root := 0
		off := w.errors(batches)
		for i, e := range w.events {
			if e.parent < 0 {
				root = i
			}
			r := w.events[root]
			want := w.clock[e.host].reads(e.start) - e.start - (w.clock[r.host].reads(r.start) - r.start)
			require.Equal(t, want, off[i])
		}
	}
	right := small
	right.offset, right.drift = 0, 0
	w = newWorld(right)
	assert.Zero(t, w.judge(w.errors(w.batches()), make([]int64, len(w.events))).max)
}

// TestJaeger: the baseline is the one that it is taken for. Of a parent of 10 ms,
// a child of 4 ms that lies outside is centred, whether anybody waited for it or
// not.
func TestJaeger(t *testing.T) {
	td := ptrace.NewTraces()
	for i, start := range []int64{0, -20 * ms, 15 * ms} {
		rs := td.ResourceSpans().AppendEmpty()
		resource(rs.Resource().Attributes(), i)
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetSpanID(spanID(i))
		s.SetStartTimestamp(pcommon.Timestamp(epoch + start))
		s.SetEndTimestamp(pcommon.Timestamp(epoch + start + 4*ms))
		if i == 0 {
			s.SetEndTimestamp(pcommon.Timestamp(epoch + 10*ms))
		} else {
			s.SetParentSpanID(spanID(0))
		}
	}
	jaeger([]ptrace.Traces{td})
	var got []int64
	each([]ptrace.Traces{td}, func(s ptrace.Span) { got = append(got, int64(s.StartTimestamp())-epoch) })
	assert.Equal(t, []int64{0, 3 * ms, 3 * ms}, got)
}

// TestCompare: from the first second on bounds hold, nothing is introduced, nothing that
// nobody waits for is moved wrongly, and errors are a hundredth of the baseline's.
func TestCompare(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("seed %d", seed+1), func(t *testing.T) {
			cfg := usual
			cfg.seed = seed + 1
			r, err := newWorld(cfg).compare(t.Context())
			require.NoError(t, err)
			assert.NoError(t, goals(r))
			assert.Positive(t, r.bounded)
			assert.Positive(t, r.ours.async)
			assert.Positive(t, r.verdicts[semconv.VerdictArtefact])
			assert.Less(t, 100*r.ours.mean, r.jaeger.mean)
			assert.Less(t, 100*r.ours.settled, r.jaeger.settled)
			assert.Positive(t, r.jaeger.moved)
		})
	}
}

// TestGoals: each of them can be missed.
func TestGoals(t *testing.T) {
	assert.NoError(t, goals(result{}))
	assert.Error(t, goals(result{ours: placement{moved: 1}}))
	assert.Error(t, goals(result{outside: 1}))
	assert.Error(t, goals(result{verdicts: map[string]int64{semconv.VerdictIntroduced: 1}}))
}

// TestFloor: the floor writes exactly what clock_skew wrote.
func TestFloor(t *testing.T) {
	w := newWorld(small)
	before, after := w.batches(), w.batches()
	o, err := newOurs(t.Context())
	require.NoError(t, err)
	require.NoError(t, o.run(t.Context(), after))
	require.NoError(t, o.close(t.Context()))
	fs := floors(before, after)
	floor(before, fs)
	want := map[int]map[string]any{}
	each(after, func(s ptrace.Span) {
		want[eventOf(s)] = s.Attributes().AsRaw()
		want[eventOf(s)]["start"], want[eventOf(s)]["end"] = s.StartTimestamp(), s.EndTimestamp()
	})
	attrs := 0
	for i := range fs {
		attrs += fs[i].Attributes()
	}
	each(before, func(s ptrace.Span) {
		got := s.Attributes().AsRaw()
		got["start"], got["end"] = s.StartTimestamp(), s.EndTimestamp()
		require.Equal(t, want[eventOf(s)], got)
	})
	assert.Greater(t, attrs, len(w.events))
}
