// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Stamps in microseconds or milliseconds that are taken for nanoseconds lie in January 1970, and
// make steps that last nothing. Whoever writes them so is told, and they are read all the same:
// a clock that was never set keeps intervals, too.

// unitFault says what of a step's stamps is no time of a computer, nil where nothing is.
func unitFault(op *model.Op) *fault {
	if op.Kind != model.KindStep || model.IsTime(op.Start) && model.IsTime(op.End) {
		return nil
	}
	what, at := "start", op.Start
	if model.IsTime(at) {
		what, at = "end", op.End
	}
	return &fault{
		what: what, got: fmt.Sprintf("%d, which is %s%s", at, time.Unix(0, at).UTC().Format(time.DateOnly), otherwise(at)),
		want: fmt.Sprintf("nanoseconds since 1970, from %d (%d) to %d (%d)", model.EarliestTime, yearOf(model.EarliestTime), model.LatestTime, yearOf(model.LatestTime)),
	}
}

func yearOf(at int64) int { return time.Unix(0, at).UTC().Year() }

// otherwise says in which unit the stamp would be a time of a computer, "" for none.
func otherwise(at int64) string {
	for _, unit := range []struct {
		name string
		ns   int64
	}{{"microseconds", 1e3}, {"milliseconds", 1e6}, {"seconds", 1e9}} {
		if at <= model.LatestTime/unit.ns && at >= model.EarliestTime/unit.ns {
			return fmt.Sprintf(", and in %s %s", unit.name, time.Unix(0, at*unit.ns).UTC().Format(time.DateOnly))
		}
	}
	return ""
}
