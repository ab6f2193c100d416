// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func window(start, end, first, last int64) *extent {
	return &extent{start: start, end: end, firstStep: first, lastStep: last, steps: true, any: true}
}

func TestClaims(t *testing.T) {
	r0 := &model.Rank{JobID: "j", Incarnation: "i", Rank: 0}
	c := newClaims(10)
	refused := func(file string, r *model.Rank, e *extent) string {
		reason, err := c.take(file, r, e)
		if err == nil {
			assert.Empty(t, reason)
			return ""
		}
		assert.Equal(t, RankTaken, reason)
		return err.Error()
	}
	assert.Empty(t, refused("a", r0, window(0, 10, 1, 2)))
	assert.Empty(t, refused("later", r0, window(10, 20, 3, 4)), "a second window follows the first")
	assert.Contains(t, refused("b", r0, window(5, 6, 8, 9)), "claim rank 0: got it from a,", "same time")
	assert.Contains(t, refused("b", r0, window(50, 60, 4, 5)), "from later,", "same step")
	assert.Contains(t, refused("b", r0, window(5, 15, 0, 9)), "from a,", "of several holders the first by name")
	assert.Empty(t, refused("a", r0, window(0, 9, 1, 2)), "a file does not contest itself")
	assert.Empty(t, refused("b", &model.Rank{JobID: "j", Incarnation: "i", Rank: 1}, window(0, 10, 1, 2)))
	assert.Empty(t, refused("c", &model.Rank{JobID: "j", Incarnation: "k"}, window(0, 10, 1, 2)), "another life")

	for _, file := range []string{"a", "later", "b", "c", "never"} {
		c.forget(file)
	}
	assert.Empty(t, c.byRank, "what is forgotten takes no memory")
	assert.Empty(t, c.byFile)
}

func TestClaimsAreBounded(t *testing.T) {
	c := newClaims(2)
	for rank, want := range []Reason{"", "", OverLimit, OverLimit} {
		reason, err := c.take(string(rune('a'+rank)), &model.Rank{Rank: int64(rank)}, window(0, 1, 1, 1))
		assert.Equal(t, want, reason)
		assert.Equal(t, want != "", err != nil)
	}
	assert.Len(t, c.byFile, 2)
	assert.Len(t, c.byRank, 2)
	reason, err := c.take("b", &model.Rank{Rank: 1}, window(0, 1, 1, 1))
	assert.Empty(t, reason, "a known file is no further one")
	assert.NoError(t, err)
	c.forget("a")
	reason, err = c.take("c", &model.Rank{Rank: 2}, window(0, 1, 1, 1))
	assert.Empty(t, reason)
	assert.NoError(t, err)
}

func TestExtent(t *testing.T) {
	var e extent
	e.add(&model.Op{Start: 20, End: 30})
	assert.Equal(t, extent{start: 20, end: 30, any: true}, e)
	e.add(&model.Op{Start: 10, End: 12, Step: model.Some[int64](7)})
	e.add(&model.Op{Start: 25, End: 40, Step: model.Some[int64](6)})
	assert.Equal(t, window(10, 40, 6, 7), &e)
	assert.False(t, (&extent{}).overlaps(&e), "an empty file covers nothing")
}
