// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"cmp"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// sortRows puts the rows of a row group in an order in which neighbours differ little: by rank, and within a
// rank by stream or thread, and start. The steps of a rank come last, so that a reader that takes the rows in
// their order has a step's operations before the step.
func sortRows(rows []row) {
	slices.SortStableFunc(rows, func(a, b row) int {
		if a.rank != b.rank {
			if c := compareRanks(a.rank, b.rank); c != 0 {
				return c
			}
		}
		return cmp.Or(
			compareBools(a.op.Kind == model.KindStep, b.op.Kind == model.KindStep),
			compareBools(a.op.Stream.OK, b.op.Stream.OK),
			cmp.Compare(a.op.Lane(), b.op.Lane()),
			cmp.Compare(a.op.Start, b.op.Start),
			cmp.Compare(a.op.End, b.op.End),
		)
	})
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareRanks orders ranks so that those that are equal are neighbours, mostly: the reader separates two
// ranks that differ in another field.
func compareRanks(a, b *model.Rank) int {
	return cmp.Or(
		cmp.Compare(a.JobID, b.JobID),
		cmp.Compare(a.Incarnation, b.Incarnation),
		cmp.Compare(a.Rank, b.Rank),
		cmp.Compare(a.HostName, b.HostName),
		cmp.Compare(a.HostID, b.HostID),
		cmp.Compare(a.PID.V, b.PID.V),
		cmp.Compare(a.ClockID, b.ClockID),
		cmp.Compare(a.HWID, b.HWID),
		cmp.Compare(a.JobName, b.JobName),
	)
}
