// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/kineto"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Reason is why a file speaks for no rank, as a value for counters.
type Reason string

// The reasons; empty is none.
const (
	Unreadable Reason = "unreadable" // no part of it is a trace
	Damaged    Reason = "damaged"    // cut off or broken half way
	TooLarge   Reason = "too_large"  // more bytes than are read of a file
	NoRank     Reason = "no_rank"    // nothing says whose it is
	Empty      Reason = "empty"      // no operation
	RankTaken  Reason = "rank_taken" // another file covers the same
	OverLimit  Reason = "over_limit" // more files than are remembered
)

// Intake gives each trace file its rank. It is not safe for concurrent use.
type Intake struct {
	options kineto.Options
	claims  *claims
	worlds  *worlds // nil until all files are known
	jobs    *jobs
}

// New returns an intake that remembers at most maxFiles files. The options must
// be those by which the traces are read.
func New(o kineto.Options, maxFiles int) *Intake {
	return &Intake{options: o, claims: newClaims(maxFiles), jobs: newJobs(o, maxFiles)}
}

// Expect says that there are these files and will be no others. From their
// names follows how many ranks a job has whose traces do not state it. Who
// waits for further files does not call it, and that number stays unknown.
func (in *Intake) Expect(paths []string) {
	in.worlds = countWorlds(in.options, paths)
	for _, path := range paths {
		in.jobs.name(path)
	}
}

// Forget gives up what a file that is gone had claimed.
func (in *Intake) Forget(path string) { in.claims.forget(path) }

// Read parses a file. progress may be nil; see [kineto.Options]. What it says
// against files read before is among the trace's problems: another world size,
// which becomes the larger of the two, or a time far from theirs.
//
// A trace that is cut off or broken is left out as a whole: it is not written
// in order of time, kernels come behind the host's events, so that a part of it
// moves the rank's clock and its own time. The trace that is returned beside
// an error is for counters and messages alone. The error is a
// [*kineto.ParseError] where the fault has a place in the file.
func (in *Intake) Read(ctx context.Context, path string, progress func(compressedBytesRead int64)) (*kineto.Trace, Reason, error) {
	options := in.options
	options.Progress = progress
	trace, err := kineto.ParseFile(ctx, path, options)
	switch {
	case err == nil:
		in.jobs.compare(path, trace)
		return trace, "", nil
	case errors.Is(err, kineto.ErrTooLarge):
		return trace, TooLarge, err
	case trace != nil && trace.Stats().Kept > 0:
		return trace, Damaged, err
	}
	return trace, Unreadable, err
}

// Identify says which rank a file that was read whole speaks for, or why for
// none. The trace's own rank is completed accordingly.
func (in *Intake) Identify(path string, trace *kineto.Trace) (model.Rank, Reason, error) {
	rank := trace.Rank()
	if !trace.HasRank() {
		if !in.worlds.alone(rank.JobID) {
			return rank, NoRank, fmt.Errorf("find rank: got none in distributedInfo and none in the file's name by the rank pattern %q; want one", in.options.RankPattern)
		}
		rank.Rank, rank.ClockID, rank.ClockEpoch = 0, "", model.Optional[int64]{} // the clock is named after the rank
	}
	in.worlds.settle(&rank)
	trace.SetRank(rank)
	rank = trace.Rank()
	covered := extentOf(trace)
	if !covered.any {
		return rank, Empty, fmt.Errorf("find operations of rank %d: got none; want at least one", rank.Rank)
	}
	reason, err := in.claims.take(path, &rank, &covered)
	return rank, reason, err
}
