// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

func TestWorld_SameSeed_SameRequests(t *testing.T) {
	w, err := newWorld(stepsPerRequest)
	require.NoError(t, err)
	again, err := newWorld(stepsPerRequest)
	require.NoError(t, err)
	assert.Equal(t, w.requests, again.requests)
	assert.Len(t, w.requests, len(layouts)*ranks/perNode)
	for _, request := range w.requests {
		assert.Greater(t, len(request), 1_000_000)
		assert.Less(t, len(request), 4_000_000, "an agent's queue divides what is larger")
	}
}

// partsOf returns a collective's parts of some ranks, as a record.
func partsOf(t *testing.T, seq int64, members ...int64) []byte {
	t.Helper()
	td := ptrace.NewTraces()
	for _, rank := range members {
		otelmap.AppendOps(td, &model.Rank{JobID: "j", Incarnation: "i", Rank: rank, HostName: "n"}, []model.Op{{
			Kind: model.KindCollective, Name: "AllReduce", Seq: seq, Step: model.Some(int64(1)), Start: 1_000_000, End: 2_000_000,
			Comm: model.Comm{ID: "0xc0ffee"}, Collective: model.Collective{Name: model.AllReduce, Seq: model.Some(seq), SeqScope: model.ScopeComm},
		}})
	}
	value, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(t, err)
	return value
}

func newFound(w *world) *found {
	return &found{world: w, spans: map[spanID]int{}, byPartition: make([]int, partitions), bySteps: map[[16]byte][]int{}, collectives: map[string]*collective{}}
}

// Of four collectives one is whole in a poll, one comes in two polls, one is in two partitions, and of one there
// is one part alone, which does not count.
func TestFound_Together_CountsPartitionsAndPolls(t *testing.T) {
	f := newFound(&world{})
	require.NoError(t, f.poll([][]byte{partsOf(t, 1, 0, 1), partsOf(t, 1, 2), partsOf(t, 2, 0), partsOf(t, 3, 0)}))
	require.NoError(t, f.poll([][]byte{partsOf(t, 2, 1)}))
	f.partitionNow = 1
	require.NoError(t, f.poll([][]byte{partsOf(t, 3, 1), partsOf(t, 4, 0)}))
	n, partition, poll := f.together()
	assert.Equal(t, 3, n)
	assert.InDelta(t, 2.0/3, partition, 1e-9)
	assert.InDelta(t, 1.0/3, poll, 1e-9)
	assert.Equal(t, 7, f.records)
}

func TestFound_Complete_NamesWhatIsMissing(t *testing.T) {
	w := &world{ids: map[spanID]struct{}{}}
	var u ptrace.ProtoUnmarshaler
	for _, seq := range []int64{1, 2} {
		td, err := u.UnmarshalTraces(partsOf(t, seq, 0, 1))
		require.NoError(t, err)
		require.NoError(t, w.add(td))
	}
	f := newFound(w)
	require.NoError(t, f.poll([][]byte{partsOf(t, 1, 0, 1), partsOf(t, 2, 0), partsOf(t, 2, 0)}))
	again, err := f.complete()
	assert.Equal(t, 1, again)
	assert.EqualError(t, err, "count spans in Kafka: 1 of 4 are missing, 0 are unknown")
	require.NoError(t, f.poll([][]byte{partsOf(t, 2, 1)}))
	_, err = f.complete()
	require.NoError(t, err)
	require.NoError(t, f.poll([][]byte{partsOf(t, 3, 1)}))
	_, err = f.complete()
	assert.EqualError(t, err, "count spans in Kafka: 0 of 4 are missing, 1 are unknown")
}

func TestFound_StepSkew_IsTheMedianOverSteps(t *testing.T) {
	assert.InDelta(t, 3, skew([]int{30, 10, 0, 0}), 1e-9, "30 over the mean of 30, 10, 0 and 0")
	f := newFound(&world{})
	for i, step := range [][]int{{1, 1}, {2, 0}, {3, 1}} {
		f.bySteps[[16]byte{byte(i)}] = step
	}
	assert.InDelta(t, 1.5, f.stepSkew(), 1e-9, "of 1, 2 and 1.5")
}

func TestOurs_Settings_AreRead(t *testing.T) {
	v, err := ours("x", "partition_by=job,producer::compression_params::level=1")
	require.NoError(t, err)
	assert.Equal(t, "job", v.settings["traces::partition_by"])
	assert.Equal(t, 1, v.settings["producer::compression_params::level"])
	_, err = ours("x", "partition_by")
	assert.ErrorContains(t, err, `read -own "partition_by"`)
}

// Both exporters are made of their settings, as a collector makes them.
func TestVariants_AreMade(t *testing.T) {
	o := options{own: []string{"partition_by=job"}}
	variants, err := o.variants()
	require.NoError(t, err)
	for _, v := range variants {
		e, err := v.open(t.Context(), "127.0.0.1:1", "t")
		require.NoError(t, err, v.name)
		require.NoError(t, e.Shutdown(t.Context()), v.name)
	}
	broken, err := ours("broken", "partition_by=rank")
	require.NoError(t, err)
	_, err = broken.open(t.Context(), "127.0.0.1:1", "t")
	assert.ErrorContains(t, err, "configure broken: check traces::partition_by")
}

func TestTable_HasRatiosAndWhyASearchEnded(t *testing.T) {
	w := &world{spans: 2, requests: [][]byte{{1}}}
	rowOf := func(name string, cpu time.Duration) row {
		f := newFound(w)
		f.byPartition[0] = 1
		f.bySteps[[16]byte{}] = []int{1}
		return row{name: name, costs: []cost{{cpu: cpu, wall: cpu, allocated: 8, spans: 2}}, found: f, disk: 4}
	}
	var b strings.Builder
	o := options{steps: 5, rounds: 1}
	o.write(&b, w, []row{rowOf("ours", 3000), rowOf("stock", 1000)}, []searched{
		{"more ranks", "ours", largest{spans: 7, bytes: 5_000_000}}, {"more ranks", "stock", largest{refused: errors.New("too large\nmore")}},
	})
	assert.Regexp(t, `(?m)^CPU ns per span, median of rounds +1500 +500 +3\.00$`, b.String())
	assert.Regexp(t, `(?m)^ours +5\.0 MB +7 spans; no larger one was tried$`, b.String())
	assert.Regexp(t, `(?m)^stock +0\.0 MB +0 spans; twice as large: too large$`, b.String())
}
