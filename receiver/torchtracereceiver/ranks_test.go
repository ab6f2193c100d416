package torchtracereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestRankOfName(t *testing.T) {
	for _, tc := range []struct {
		pattern, path string
		want          int64
		ok            bool
	}{
		{"", "/runs/rank9/worker3_step_12.1694128201557.pt.trace.json.gz", 3, true},
		{"", "rank0.json", 0, true},
		{"", "host_1234.json", 0, false},
		{`^(?:a(\d+)|b(\d+))$`, "b7", 7, true},
		{`x(\d+)`, "x99999999999999999999", 0, false},
		{`x(.*)`, "x-3", 0, false},
		{"", "worker2_rank5.json", 5, true},
	} {
		cfg := newDefaultConfig()
		if tc.pattern != "" {
			cfg.RankPattern = tc.pattern
		}
		options, err := cfg.options()
		require.NoError(t, err)
		rank, ok := (&reader{options: options}).rankOfName(tc.path)
		assert.Equal(t, tc.ok, ok, tc.path)
		if tc.ok {
			assert.Equal(t, tc.want, rank, tc.path)
		}
	}
}

func TestWorldSize(t *testing.T) {
	unknown := model.Optional[int64]{}
	for _, tc := range []struct {
		name   string
		job    string
		files  []string
		stated []model.Optional[int64] // by the first files
		want   int64
	}{
		{name: "ranks named", files: []string{"j/rank0", "j/rank1", "j/rank2"}, want: 3},
		{name: "one missing", files: []string{"j/rank0", "j/rank3"}, want: 4},
		{name: "one twice", files: []string{"j/rank0.a", "j/rank0.b", "j/rank1"}, want: 2},
		{name: "no names", files: []string{"j/x", "j/y"}, want: 2},
		{name: "some names", files: []string{"j/rank0", "j/x"}, want: 2},
		{name: "folders are jobs", files: []string{"j/rank0", "j/rank1", "k/rank0"}, want: 2},
		{name: "one job over folders", job: "llama", files: []string{"j/rank0", "k/rank1"}, want: 2},
		{name: "stated by another", files: []string{"j/rank0", "j/rank1"}, stated: []model.Optional[int64]{model.Some[int64](16)}, want: 16},
	} {
		t.Run(tc.name, func(t *testing.T) {
			options := kineto.DefaultOptions()
			options.JobID = tc.job
			rd := &reader{options: options}
			var files []kineto.File
			for _, path := range tc.files {
				files = append(files, kineto.File{Path: path})
			}
			w := rd.countWorlds(files)
			for i, size := range tc.stated {
				rank := model.Rank{WorldSize: size}
				w.settle(rd.jobOf(tc.files[i]), &rank)
				assert.Equal(t, size, rank.WorldSize, "what a trace states is kept")
			}
			rank := model.Rank{WorldSize: unknown}
			w.settle(rd.jobOf(tc.files[0]), &rank)
			assert.Equal(t, model.Some(tc.want), rank.WorldSize)
		})
	}
}

func TestWorldSizeStaysUnknownWhileWatching(t *testing.T) {
	var w *worlds
	rank := model.Rank{}
	w.settle("j", &rank)
	assert.False(t, rank.WorldSize.OK)
	assert.False(t, w.alone("j"))
}

func window(start, end, first, last int64) extent {
	return extent{start: start, end: end, firstStep: first, lastStep: last, steps: true, any: true}
}

func TestClaims(t *testing.T) {
	r0 := &model.Rank{JobID: "j", Incarnation: "i", Rank: 0}
	c := newClaims()
	take := func(file string, r *model.Rank, e extent) string {
		holder, ok := c.take(file, r, e)
		assert.Equal(t, ok, holder == "")
		return holder
	}
	assert.Empty(t, take("a", r0, window(0, 10, 1, 2)))
	assert.Empty(t, take("later", r0, window(10, 20, 3, 4)), "a second window follows the first")
	assert.Equal(t, "a", take("b", r0, window(5, 6, 8, 9)), "same time")
	assert.Equal(t, "later", take("b", r0, window(50, 60, 4, 5)), "same step")
	assert.Equal(t, "a", take("b", r0, window(5, 15, 0, 9)), "of several holders the first by name")
	assert.Empty(t, take("a", r0, window(0, 9, 1, 2)), "a file does not contest itself")
	assert.Empty(t, take("b", &model.Rank{JobID: "j", Incarnation: "i", Rank: 1}, window(0, 10, 1, 2)))
	assert.Empty(t, take("c", &model.Rank{JobID: "j", Incarnation: "k"}, window(0, 10, 1, 2)), "another life")

	for _, file := range []string{"a", "later", "b", "c", "never"} {
		c.forget(file)
	}
	assert.Empty(t, c.byRank, "what is forgotten takes no memory")
	assert.Empty(t, c.byFile)
}

func TestExtent(t *testing.T) {
	var e extent
	e.add(&model.Op{Start: 20, End: 30})
	assert.Equal(t, extent{start: 20, end: 30, any: true}, e)
	e.add(&model.Op{Start: 10, End: 12, Step: model.Some[int64](7)})
	e.add(&model.Op{Start: 25, End: 40, Step: model.Some[int64](6)})
	assert.Equal(t, window(10, 40, 6, 7), e)
	assert.False(t, (&extent{}).overlaps(&e), "an empty file covers nothing")
}
