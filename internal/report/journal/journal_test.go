// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func slow(id string, revision int64, cost float64) *model.Finding {
	return &model.Finding{
		ID: id, Revision: revision, Kind: model.FindingStraggler, Class: model.ClassHost, Status: model.StatusOpen,
		Rank: model.Some(int64(5)), CostSeconds: model.Some(cost),
	}
}

// print notes a revision and prints it where it has news.
func (j *Journal) print(f *model.Finding, now time.Time) (News, bool) {
	n, ok := j.Note(f, now)
	if ok {
		j.Printed(&n, now)
	}
	return n, ok
}

func TestNote_FirstRevision_IsNews(t *testing.T) {
	j, now := New(Config{}), time.Unix(100, 0)
	a, ok := j.print(slow("a", 0, 1), now)
	require.True(t, ok)
	b, ok := j.print(slow("b", 0, 1), now)
	require.True(t, ok)
	assert.Equal(t, []int{1, 2}, []int{a.Number, b.Number})
	assert.True(t, a.First && b.First)
	assert.Equal(t, 2, j.Count())
	assert.True(t, j.Knows("a"))
	assert.False(t, j.Knows("c"))
}

func TestNote_LaterRevision_IsNewsWhereItDiffers(t *testing.T) {
	now := time.Unix(100, 0)
	for name, tc := range map[string]struct {
		change func(f *model.Finding)
		news   bool
	}{
		"nothing":        {func(*model.Finding) {}, false},
		"cost by a half": {func(f *model.Finding) { f.CostSeconds = model.Some(1.5) }, false},
		"cost by more":   {func(f *model.Finding) { f.CostSeconds = model.Some(1.51) }, true},
		"less cost":      {func(f *model.Finding) { f.CostSeconds = model.Some(0.6) }, true},
		"class":          {func(f *model.Finding) { f.Class = model.ClassCompute }, true},
		"rank":           {func(f *model.Finding) { f.Rank = model.Some(int64(6)) }, true},
		"link":           {func(f *model.Finding) { f.Link = "rank 1 -> rank 2" }, true},
		"closed":         {func(f *model.Finding) { f.Status = model.StatusClosed }, true},
		"updated":        {func(f *model.Finding) { f.Status = model.StatusUpdated }, false},
		"older revision": {func(f *model.Finding) { f.Revision, f.Class = 0, model.ClassCompute }, false},
	} {
		t.Run(name, func(t *testing.T) {
			j := New(Config{})
			_, ok := j.print(slow("a", 1, 1), now)
			require.True(t, ok)
			f := slow("a", 2, 1)
			tc.change(f)
			n, ok := j.print(f, now)
			assert.Equal(t, tc.news, ok)
			assert.False(t, ok && n.First)
			assert.Equal(t, 1, j.Count())
		})
	}
}

// A change that comes too soon is compared anew with the next revision. An end is printed at once.
func TestNote_UpdateEvery_HoldsChangesBack(t *testing.T) {
	j, now := New(Config{UpdateEvery: 3 * time.Second}), time.Unix(100, 0)
	_, _ = j.print(slow("a", 0, 1), now)
	_, ok := j.print(slow("a", 1, 2), now)
	assert.True(t, ok, "the first change")
	_, ok = j.print(slow("a", 2, 4), now.Add(time.Second))
	assert.False(t, ok)
	ends := slow("a", 3, 4)
	ends.Status = model.StatusClosed
	_, ok = j.print(ends, now.Add(2*time.Second))
	assert.True(t, ok)
	_, ok = j.print(slow("b", 0, 4), now.Add(2*time.Second))
	assert.True(t, ok, "another finding")
	_, ok = j.print(slow("b", 1, 8), now.Add(2999*time.Millisecond))
	assert.False(t, ok)
	_, ok = j.print(slow("b", 2, 8), now.Add(3*time.Second))
	assert.True(t, ok)
}

// What could not be printed is news when it is sent again, and what was printed is not.
func TestNote_SentAgain_IsNewsUntilItIsPrinted(t *testing.T) {
	j, now := New(Config{}), time.Unix(100, 0)
	n, ok := j.Note(slow("a", 0, 1), now)
	require.True(t, ok)
	again, ok := j.Note(slow("a", 0, 1), now)
	require.True(t, ok)
	assert.Equal(t, n.Number, again.Number)
	assert.True(t, again.First)
	j.Printed(&again, now)
	_, ok = j.Note(slow("a", 0, 1), now)
	assert.False(t, ok)
}

func TestNote_FindingWithoutID_IsNewsEachTime(t *testing.T) {
	j, now := New(Config{}), time.Unix(100, 0)
	for i := range 3 {
		n, ok := j.print(slow("", 0, 1), now)
		assert.True(t, ok)
		assert.Equal(t, i+1, n.Number)
	}
	assert.Empty(t, j.Entries())
}

func TestEntries_AreMostCostlyFirst_AndBounded(t *testing.T) {
	forgotten := 0
	j, now := New(Config{Forgotten: func() { forgotten++ }}), time.Unix(100, 0)
	for i := range MaxFindings + 10 {
		_, _ = j.print(slow(strconv.Itoa(i), 0, float64(i)), now)
	}
	all := j.Entries()
	require.Len(t, all, MaxFindings)
	assert.Equal(t, 10, forgotten)
	assert.Equal(t, MaxFindings+10, j.Count())
	assert.Equal(t, strconv.Itoa(MaxFindings+9), all[0].Latest.ID)
	assert.Equal(t, "10", all[MaxFindings-1].Latest.ID, "the oldest are forgotten")
}

func TestSummary_OfMany_EndsWithTheirNumber(t *testing.T) {
	j, now := New(Config{}), time.Unix(100, 0)
	assert.Empty(t, j.Summary())
	_, _ = j.print(slow("a", 0, 0.1), now)
	_, _ = j.print(slow("b", 0, 0.2), now)
	_, _ = j.Note(slow("a", 1, 0.11), now) // no news, but the latest
	_, _ = j.Note(slow("unprinted", 0, 1), now)
	assert.Equal(t, []string{
		"At the end, finding 2: rank 5, host, cost 200 ms per step.", "At the end, finding 1: rank 5, host, cost 110 ms per step.",
	}, j.Summary())
	for i := range 20 {
		_, _ = j.print(slow(strconv.Itoa(i), 0, 0.3), now)
	}
	lines := j.Summary()
	require.Len(t, lines, 17)
	assert.Equal(t, "And 6 more.", lines[16])
}
