// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/kineto"
)

// Sort puts files into the order in which they are read, which decides whose
// claim comes first: by job, rank as named, and path, so that rank 10 comes
// behind rank 9. A file without a rank in its name comes last of its job.
func Sort[F any](files []F, o kineto.Options, path func(F) string) {
	type place struct {
		file      F
		job, path string
		rank      int64
	}
	places := make([]place, len(files))
	for i, f := range files {
		p := place{file: f, path: path(f), rank: math.MaxInt64}
		p.job = kineto.JobID(o, p.path)
		if rank, ok := kineto.RankOfName(o, p.path); ok {
			p.rank = rank
		}
		places[i] = p
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.rank, b.rank), cmp.Compare(a.path, b.path))
	})
	for i := range places {
		files[i] = places[i].file
	}
}
