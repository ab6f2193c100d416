// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestWorldSize(t *testing.T) {
	t.Setenv(kineto.EnvJobID, "")
	for _, tc := range []struct {
		name   string
		job    string
		files  []string
		rank   int64   // of the first file
		stated []int64 // by other traces of the job
		want   int64
	}{
		{name: "ranks named", files: []string{"j/rank0", "j/rank1", "j/rank2"}, want: 3},
		{name: "one missing", files: []string{"j/rank0", "j/rank3"}, want: 4},
		{name: "one twice", files: []string{"j/rank0.a", "j/rank0.b", "j/rank1"}, want: 2},
		{name: "no names", files: []string{"j/x", "j/y"}, want: 2},
		{name: "some names", files: []string{"j/rank0", "j/x"}, want: 2},
		{name: "folders are jobs", files: []string{"j/rank0", "j/rank1", "k/rank0"}, want: 2},
		{name: "folders of one name are one job", files: []string{"a/j/rank0", "b/j/rank1"}, want: 2},
		{name: "one job over folders", job: "llama", files: []string{"j/rank0", "k/rank1"}, want: 2},
		{name: "stated by others", files: []string{"j/rank0", "j/rank1"}, stated: []int64{16, 8}, want: 16},
		{name: "rank in the header alone", files: []string{"j/x", "j/y"}, rank: 7, want: 8},
	} {
		t.Run(tc.name, func(t *testing.T) {
			options := kineto.DefaultOptions()
			options.JobID = tc.job
			w := countWorlds(options, tc.files)
			job := kineto.JobID(options, tc.files[0])
			for _, size := range tc.stated {
				rank := model.Rank{JobID: job, WorldSize: model.Some(size)}
				w.settle(&rank)
				assert.Equal(t, model.Some(size), rank.WorldSize, "what a trace states is kept")
			}
			rank := model.Rank{JobID: job, Rank: tc.rank}
			w.settle(&rank)
			assert.Equal(t, model.Some(tc.want), rank.WorldSize)
		})
	}
}

func TestWorldSizeStaysUnknownWhereFilesAreToCome(t *testing.T) {
	var w *worlds
	rank := model.Rank{}
	w.settle(&rank)
	assert.False(t, rank.WorldSize.OK)
	assert.False(t, w.alone("j"))
}

func TestSort(t *testing.T) {
	t.Setenv(kineto.EnvJobID, "")
	files := []string{"k/rank0.json", "j/rank10.json", "j/trace.json", "j/rank9b.json", "j/rank9.json", "j/rank1.json"}
	sorted := []string{"j/rank1.json", "j/rank9.json", "j/rank9b.json", "j/rank10.json", "j/trace.json", "k/rank0.json"}
	Sort(files, kineto.DefaultOptions(), func(f string) string { return f })
	assert.Equal(t, sorted, files)
}
