// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

func TestFile_EveryField_ComesBack(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		batches := randomBatches(t, 1, 3, 50, sparse)
		m, got, err := read(written(t, Meta{Job: "job", Incarnation: "life", Resolution: Exact, Producer: "1.2.3", Sequence: 7}, batches))
		require.NoError(t, err)
		require.Len(t, got, 3)
		for i := range batches {
			assert.Equal(t, batches[i], got[i])
		}
		assert.Equal(t, "job", m.Job)
		assert.Equal(t, "life", m.Incarnation)
		assert.Equal(t, "1.2.3", m.Producer)
		assert.EqualValues(t, 7, m.Sequence)
		assert.EqualValues(t, 3, m.RanksCount)
	}
}

// Values at the ends of their types, and those that differ from their neighbours by more than the type has.
func TestFile_ExtremeNumbers_ComeBack(t *testing.T) {
	b := Batch{RankOps: model.RankOps{Rank: model.Rank{Rank: math.MaxInt64}}}
	for i, n := range []int64{math.MinInt64, math.MaxInt64, 0, -1, 1, math.MinInt64, math.MaxInt64} {
		b.Ops = append(b.Ops, model.Op{
			Name: strings.Repeat("x", i), Seq: n, Start: math.MinInt64 + int64(i), End: n, Correlation: model.Some(n),
			Launch: model.Some(n), Clock: model.ClockNote{RawStart: model.Some(-n), Offset: model.Some(math.Inf(1)), Bound: model.Some(math.Copysign(0, -1))},
		})
	}
	_, got, err := read(written(t, Meta{Resolution: Exact}, []Batch{b}))
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Equal(t, b.Ops, got[0].Ops)
	assert.True(t, math.Signbit(got[0].Ops[0].Clock.Bound.V), "zero keeps its sign")
}

func TestFile_HundredNanoseconds_DifferByFiftyAtMost(t *testing.T) {
	b := Batch{RankOps: model.RankOps{Ops: []model.Op{
		{Start: 1_700_000_000_000_000_049, End: 1_700_000_000_000_000_050, Launch: model.Some(int64(1_700_000_000_000_000_151))},
		{Start: 1_700_000_000_000_000_151, End: 1_700_000_000_000_000_999},
		{Start: -149, End: -51}, // by date the first
	}}}
	m, got, err := read(written(t, Meta{Resolution: HundredNanosecs}, []Batch{b}))
	require.NoError(t, err)
	assert.Equal(t, HundredNanosecs, m.Resolution)
	assert.EqualValues(t, 50, m.Resolution.MaxError())
	require.Len(t, got, 1)
	type times struct{ start, end int64 }
	var have []times
	for _, op := range got[0].Ops {
		have = append(have, times{op.Start, op.End})
	}
	assert.Equal(t, []times{
		{-100, -100},
		{1_700_000_000_000_000_000, 1_700_000_000_000_000_100},
		{1_700_000_000_000_000_200, 1_700_000_000_000_001_000},
	}, have)
	assert.Equal(t, model.Some(int64(1_700_000_000_000_000_200)), got[0].Ops[1].Launch)
}

func TestFile_ManyRows_HasRowGroups(t *testing.T) {
	ops := make([]model.Op, 2*groupRows+10)
	for i := range ops {
		ops[i] = model.Op{Kind: model.KindCompute, Name: "gemm", Start: int64(i), End: int64(i) + 5, Step: model.Some(int64(i / 1000))}
	}
	b := written(t, Meta{Resolution: Exact}, []Batch{{RankOps: model.RankOps{Ops: ops}}})
	f, err := Open(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	defer f.Close()
	assert.Equal(t, 3, f.Groups())
	assert.Equal(t, model.Some(int64(0)), f.Meta.FirstStep)
	assert.Equal(t, model.Some(int64(65)), f.Meta.LastStep)
	n := 0
	for i := range f.Groups() {
		batches, err := f.Read(i)
		require.NoError(t, err)
		for _, batch := range batches {
			assert.Equal(t, ops[n:n+len(batch.Ops)], batch.Ops)
			n += len(batch.Ops)
		}
	}
	assert.Len(t, ops, n)
}

func TestWriter_RowsThatAreLarge_AreWrittenInTime(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, Meta{Resolution: Exact})
	require.NoError(t, err)
	stack := strings.Repeat("s", cut.MaxLong)
	for i := range 2000 {
		require.NoError(t, w.Add(&model.Rank{}, []model.Op{{Stack: stack[:len(stack)-i]}}, nil))
		assert.Less(t, w.Waiting(), groupBytes)
	}
	require.NoError(t, w.Close())
	_, batches, err := read(out.Bytes())
	require.NoError(t, err)
	assert.Greater(t, len(batches), 3, "2,000 stacks of 64 KiB are more than three row groups of 32 MiB")
}

func TestWriter_TextOverItsLimit_IsCutOrLeftOut(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, Meta{Resolution: Exact})
	require.NoError(t, err)
	name := strings.Repeat("n", cut.MaxName+1)
	require.NoError(t, w.Add(&model.Rank{}, []model.Op{{Name: name}, {Name: name, Start: 1}},
		map[int]*model.Summary{1: {Ops: 3, Histograms: strings.Repeat("h", maxDocument+1)}}))
	require.NoError(t, w.Close())
	assert.EqualValues(t, 3, w.Cut())
	_, got, err := read(out.Bytes())
	require.NoError(t, err)
	assert.Equal(t, cut.Bytes(name, cut.MaxName), got[0].Ops[0].Name)
	assert.Equal(t, map[int]*model.Summary{1: {Ops: 3}}, got[0].Summaries)
}

func TestWriter_UnknownResolution_IsRefused(t *testing.T) {
	_, err := NewWriter(&bytes.Buffer{}, Meta{Resolution: 10})
	assert.EqualError(t, err, "begin file: got resolution 10 ns; want 1 or 100")
}

// Of a rank, the operations of a stream are neighbours, and the step comes last.
func TestFile_Rows_AreInTheOrderOfTheFormat(t *testing.T) {
	stream := model.Some[int64]
	ops := []model.Op{
		{Kind: model.KindStep, Name: "step", Start: 1},
		{Kind: model.KindCompute, Name: "b7", Stream: stream(7), Start: 5},
		{Kind: model.KindCompute, Name: "a9", Stream: stream(9), Start: 2},
		{Kind: model.KindCompute, Name: "a7", Stream: stream(7), Start: 3},
		{Kind: model.KindScope, Name: "host", ThreadID: stream(7), Start: 9},
	}
	_, got, err := read(written(t, Meta{Resolution: Exact}, []Batch{
		{RankOps: model.RankOps{Rank: model.Rank{Rank: 1}, Ops: ops}}, {RankOps: model.RankOps{Rank: model.Rank{Rank: 0}, Ops: ops[:1]}},
	}))
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.EqualValues(t, 0, got[0].Rank.Rank)
	var names []string
	for _, op := range got[1].Ops {
		names = append(names, op.Name)
	}
	assert.Equal(t, []string{"host", "a7", "b7", "a9", "step"}, names)
}
