// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
)

// Folders side by side that share no rank are nodes of one job, also where there are several jobs.
func TestRead_FoldersOfNodes_AreOneJob(t *testing.T) {
	for name, c := range map[string]struct {
		folders map[string][]int // the ranks in each
		jobs    map[string]int   // how many ranks of each are known
	}{
		"two jobs of two nodes":   {map[string][]int{"a/n0": {0, 1}, "a/n1": {2, 3}, "b/n0": {0, 1}, "b/n1": {2, 3}}, map[string]int{"a": 4, "b": 4}},
		"other nodes each":        {map[string][]int{"a/n0": {0, 1}, "a/n7": {2, 3}, "b/n3": {0, 3}, "b/n4": {1}, "b/n5": {2}}, map[string]int{"a": 4, "b": 4}},
		"a folder a rank":         {map[string][]int{"a/0": {0}, "a/1": {1}, "a/2": {2}, "a/3": {3}, "b/0": {0}, "b/1": {1}, "b/2": {2}, "b/3": {3}}, map[string]int{"a": 4, "b": 4}},
		"racks of nodes":          {map[string][]int{"a/r0/n0": {0}, "a/r0/n1": {1}, "a/r1/n0": {2}, "a/r1/n1": {3}, "b/n": {0, 1, 2, 3}}, map[string]int{"a": 4, "n": 4}},
		"one job in one folder":   {map[string][]int{"a/n0": {0, 1}, "a/n1": {2, 3}, "b": {0, 1, 2, 3}}, map[string]int{"a": 4, "b": 4}},
		"three jobs side by side": {map[string][]int{"a": {0, 1, 2, 3}, "b": {0, 1, 2, 3}, "c": {0, 1, 2, 3}}, map[string]int{"a": 4, "b": 4, "c": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var paths []string
			for folder, ranks := range c.folders {
				at := int64(folder[0]-'a') * 20 // of the job
				dumps := make([]*frwrite.Dump, 4)
				for _, r := range ranks {
					dumps[r] = world(4, at)[r]
				}
				paths = append(paths, write(t, filepath.Join(dir, folder), "rank_", dumps)...)
			}
			slices.Sort(paths)
			r := Read(t.Context(), paths, Options{})
			got := map[string]int{}
			for i := range r.Hangs {
				got[r.Hangs[i].Job.Name] = r.Hangs[i].Ranks
			}
			assert.Equal(t, c.jobs, got)
		})
	}
}
