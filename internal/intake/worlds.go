// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// worlds knows how many ranks each job has. A step is complete when all of them
// have been seen, so a trace that does not state its world size needs one from
// elsewhere: from another file of its job, else from the names of the files.
// There are at most as many jobs as files.
type worlds struct {
	named  map[string]int64 // by job: as the file names have it
	stated map[string]int64 // by job: the largest that a trace stated
	files  map[string]int   // by job
}

// countWorlds looks at names only: reading every file twice would double the
// time of a replay to learn what nearly every trace states.
//
// The size is the larger of two numbers: that of the distinct ranks named, a
// file without a rank in its name counting as one more, and the highest rank
// named plus one, since a missing file does not make the job smaller.
func countWorlds(o kineto.Options, paths []string) *worlds {
	w := &worlds{named: map[string]int64{}, stated: map[string]int64{}, files: map[string]int{}}
	ranks := map[string]map[int64]bool{}
	nameless := map[string]int64{}
	for _, path := range paths {
		job := kineto.JobID(o, path)
		w.files[job]++
		rank, ok := kineto.RankOfName(o, path)
		if !ok {
			nameless[job]++
			continue
		}
		if ranks[job] == nil {
			ranks[job] = map[int64]bool{}
		}
		ranks[job][rank] = true
		w.named[job] = max(w.named[job], rank+1)
	}
	for job := range w.files {
		w.named[job] = max(w.named[job], int64(len(ranks[job]))+nameless[job])
	}
	return w
}

// settle completes a rank whose trace did not state the world size, and
// remembers what one did state. Without worlds the files that are still to come
// are not known, and the size stays unknown.
func (w *worlds) settle(r *model.Rank) {
	if w == nil {
		return
	}
	if r.WorldSize.OK {
		w.stated[r.JobID] = max(w.stated[r.JobID], r.WorldSize.V)
		return
	}
	w.named[r.JobID] = max(w.named[r.JobID], r.Rank+1) // a header may state the rank alone
	size := w.stated[r.JobID]
	if size == 0 {
		size = w.named[r.JobID]
	}
	r.WorldSize = model.Some(size)
}

// alone reports whether the job has a single file, which then may be rank 0
// without saying so.
func (w *worlds) alone(job string) bool { return w != nil && w.files[job] == 1 }
