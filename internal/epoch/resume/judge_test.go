// SPDX-License-Identifier: Apache-2.0

package resume

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/epoch"
	"github.com/lockstep-otel/lockstep/internal/model"
)

var key = Key{"job", "first"}

// told is what a rank of a job of so many says; change says what else.
func told(rank, of, step int64, change ...func(*model.Resume)) *model.Resume {
	v := &model.Resume{
		Rank: model.Rank{
			JobID: key.Job, JobName: "llama", Incarnation: key.Incarnation, Rank: rank,
			HostName: fmt.Sprint("node", rank/2), HWID: fmt.Sprint("GPU-", rank),
		},
		Time: 1000 + rank, Life: fmt.Sprint("process ", rank), Number: 1, Step: step,
	}
	if of > 0 {
		v.Rank.WorldSize = model.Some(of)
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func updates(n int64) func(*model.Resume) {
	return func(v *model.Resume) { v.OptimizerStep = model.Some(n) }
}

func data(replica, cursor, rng string) func(*model.Resume) {
	return func(v *model.Resume) { v.Replica, v.DataCursor, v.RNGDigest = replica, cursor, rng }
}

func number(n int64) func(*model.Resume) { return func(v *model.Resume) { v.Number = n } }

func process(name string, at int64) func(*model.Resume) {
	return func(v *model.Resume) { v.Life, v.Time = name, at }
}

func judged(of ...*model.Resume) Judgement {
	e := New(Config{})
	for _, v := range of {
		e.Observe(v)
	}
	return e.Judge(key)
}

func TestVerdicts(t *testing.T) {
	for name, tc := range map[string]struct {
		told []*model.Resume
		want epoch.Verdict
	}{
		"nobody":                           {nil, epoch.Unknown},
		"one of two":                       {[]*model.Resume{told(0, 2, 7)}, epoch.Converging},
		"both":                             {[]*model.Resume{told(0, 2, 7), told(1, 2, 7)}, epoch.Converged},
		"one alone is whole":               {[]*model.Resume{told(0, 1, 7)}, epoch.Converged},
		"all that are heard of":            {[]*model.Resume{told(0, 0, 7), told(1, 0, 7)}, epoch.Converging},
		"steps differ":                     {[]*model.Resume{told(0, 2, 7), told(1, 2, 8)}, epoch.MixedEpoch},
		"steps differ, and one is silent":  {[]*model.Resume{told(0, 3, 7), told(2, 3, 8)}, epoch.MixedEpoch},
		"updates differ":                   {[]*model.Resume{told(0, 2, 7, updates(7)), told(1, 2, 7, updates(6))}, epoch.MixedEpoch},
		"one does not say its updates":     {[]*model.Resume{told(0, 2, 7, updates(7)), told(1, 2, 7)}, epoch.Converged},
		"cursors of nobody's in common":    {[]*model.Resume{told(0, 2, 7, data("", "1", "a")), told(1, 2, 7, data("", "2", "b"))}, epoch.Converged},
		"cursors of two replicas":          {[]*model.Resume{told(0, 2, 7, data("x", "1", "a")), told(1, 2, 7, data("y", "2", "b"))}, epoch.Converged},
		"cursors of one replica":           {[]*model.Resume{told(0, 2, 7, data("x", "1", "a")), told(1, 2, 7, data("x", "2", "a"))}, epoch.MixedEpoch},
		"generators of one replica":        {[]*model.Resume{told(0, 2, 7, data("x", "1", "a")), told(1, 2, 7, data("x", "1", "b"))}, epoch.MixedEpoch},
		"of one the replica is not said":   {[]*model.Resume{told(0, 2, 7, data("x", "1", "a")), told(1, 2, 7, data("", "2", "b"))}, epoch.Converged},
		"one has loaded again":             {[]*model.Resume{told(0, 2, 7), told(1, 2, 7), told(1, 2, 5, number(2))}, epoch.Converging},
		"both have":                        {[]*model.Resume{told(0, 2, 7), told(1, 2, 9), told(1, 2, 5, number(2)), told(0, 2, 5, number(2))}, epoch.Converged},
		"those that have not disagree":     {[]*model.Resume{told(0, 3, 7), told(1, 3, 8), told(2, 3, 7), told(2, 3, 5, number(2))}, epoch.MixedEpoch},
		"what is late changes nothing":     {[]*model.Resume{told(0, 2, 5, number(2)), told(1, 2, 5, number(2)), told(1, 2, 9)}, epoch.Converged},
		"one was started again":            {[]*model.Resume{told(0, 2, 7), told(1, 2, 7), told(1, 2, 5, process("new", 5000))}, epoch.Converging},
		"all were":                         {[]*model.Resume{told(0, 2, 7), told(1, 2, 9), told(1, 2, 5, process("new", 5000)), told(0, 2, 5, process("other", 4000))}, epoch.Converged},
		"more than there are":              {[]*model.Resume{told(0, 2, 7, number(2)), told(1, 2, 7, number(2)), told(2, 2, 7)}, epoch.Converging},
		"one contradicts itself":           {[]*model.Resume{told(0, 2, 7), told(1, 2, 7), told(1, 2, 8)}, epoch.Converging},
		"one contradicts itself and knows": {[]*model.Resume{told(0, 3, 7), told(1, 3, 7), told(1, 3, 8), told(2, 3, 8)}, epoch.MixedEpoch},
	} {
		assert.Equal(t, tc.want, judged(tc.told...).Verdict, name)
	}
}

func TestTheMinorityIsNamed(t *testing.T) {
	j := judged(told(0, 4, 7), told(1, 4, 7), told(2, 4, 7), told(3, 4, 9))
	require.Len(t, j.Fields, 1)
	assert.Equal(t, Field{
		Name: "step", Held: []Held{{"7", []int64{0, 1, 2}, 3}, {"9", []int64{3}, 1}}, HeldCount: 2, Told: 4, Decided: true,
	}, j.Fields[0])
	assert.Equal(t, []any{[]int64{3}, 1, []string{"node1"}, []string{"GPU-3"}, 4, 4, 0},
		[]any{j.Minority, j.MinorityCount, j.Hosts, j.HWIDs, j.Ranks, j.Of, j.Apart})
}

func TestNobodyIsNamedWhereNothingDecides(t *testing.T) {
	for name, of := range map[string][]*model.Resume{
		"two":                               {told(0, 2, 7), told(1, 2, 9)},
		"an even split":                     {told(0, 4, 7), told(1, 4, 7), told(2, 4, 9), told(3, 4, 9)},
		"three sides":                       {told(0, 4, 7), told(1, 4, 7), told(2, 4, 8), told(3, 4, 9)},
		"the silent may be of the minority": {told(0, 5, 7), told(1, 5, 7), told(2, 5, 9)},
		"of a replica, more may tell":       {told(0, 4, 7, data("x", "1", "")), told(1, 4, 7, data("x", "1", "")), told(2, 4, 7, data("x", "2", ""))},
	} {
		j := judged(of...)
		assert.Equal(t, epoch.MixedEpoch, j.Verdict, name)
		assert.Equal(t, []any{false, 0, 0}, []any{j.Fields[0].Decided, len(j.Minority), j.MinorityCount}, name)
	}
	j := judged(told(0, 3, 7, data("x", "1", "")), told(1, 3, 7, data("x", "1", "")), told(2, 3, 7, data("x", "2", "")))
	assert.Equal(t, []any{"data_cursor", "x", []int64{2}}, []any{j.Fields[0].Name, j.Fields[0].Replica, j.Minority})
}

func TestJudgementsAreBounded(t *testing.T) {
	var all []*model.Resume
	for i := range int64(1000) {
		all = append(all, told(i, 1000, i/2, data(fmt.Sprint(i/4), fmt.Sprint(i%4/3), "")))
	}
	j := judged(all...)
	assert.Equal(t, []int{1 + 250, 16, 500, 16}, []int{j.FieldsCount, len(j.Fields), j.Fields[0].HeldCount, len(j.Fields[0].Held)})
	assert.Equal(t, []int{250, 64, 64}, []int{j.MinorityCount, len(j.Minority), len(j.Hosts)}, "of each replica the fourth")
}

func TestRoomIsBounded(t *testing.T) {
	e := New(Config{Ranks: 4, Incarnations: 2})
	other := func(v *model.Resume) { v.Rank.Incarnation = "other" }
	for i := range int64(3) {
		e.Observe(told(i, 3, 7, other))
	}
	for i := range int64(3) {
		e.Observe(told(i, 3, 7))
	}
	assert.Equal(t, []any{[]Key{key}, 3, int64(1)}, []any{e.Keys(), e.Stats().Ranks, e.Stats().Left}, "the one that is silent leaves")
	assert.Equal(t, epoch.Converged, e.Judge(key).Verdict)
	e.Observe(told(3, 3, 7))
	e.Observe(told(4, 3, 9))
	assert.Equal(t, []any{4, int64(1)}, []any{e.Stats().Ranks, e.Stats().Overflowed})
	assert.Equal(t, epoch.Converging, e.Judge(key).Verdict, "of who found no room nobody knows")

	e = New(Config{})
	e.Observe(told(0, 1, 7))
	for i := range int64(20) {
		e.Observe(told(0, 1, 7, process(fmt.Sprint(i), 2000+i)))
	}
	assert.Equal(t, int64(21-maxLives), e.Stats().Overflowed)
	assert.Equal(t, epoch.Converging, e.Judge(key).Verdict)

	e = New(Config{Incarnations: 3})
	for i := range 10 {
		e.Observe(told(0, 1, 7, func(v *model.Resume) { v.Rank.Incarnation = fmt.Sprint(i) }))
	}
	assert.Equal(t, []Key{{"job", "7"}, {"job", "8"}, {"job", "9"}}, e.Keys())
}
