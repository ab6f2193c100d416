// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"fmt"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Stats count what was read of one file.
type Stats struct {
	Bytes  int64 // uncompressed
	Events int64 // all elements of traceEvents
	Kept   int64 // events that are held in memory

	// Skipped, by reason.
	NotNeeded  int64 // kinds of events that nothing here uses
	NotEvents  int64 // elements that are no objects
	BadTime    int64 // no start, or no number in ts or dur
	TooLong    int64 // over MaxEventBytes
	TooDeep    int64 // nested too deeply
	OverLimit  int64 // beyond MaxEvents
	Nested     int64 // host operators inside others
	OtherNames int64 // kept, but without name or arguments, beyond MaxStrings

	StepsRepeated int64 // step marks whose number was seen before
	OutsideSteps  int64 // operations outside every step
	NoLaunch      int64 // operations of GPUs and CPU backends whose launch was not recorded
	SharedSeq     int64 // collectives whose Seq several share; numbered by us

	Truncated bool // the file ended, or was broken, before its end
}

// counterAt counts a fault and remembers where it was first.
type counterAt struct {
	n     int64
	first int64
}

func (c *counterAt) hit(at int64) {
	if c.n == 0 {
		c.first = at
	}
	c.n++
}

// faults are what is reported once each.
type faults struct {
	notEvents, badTime, tooLong, tooDeep, overLimit, names counterAt
}

func (f *faults) into(s *Stats) {
	s.NotEvents, s.BadTime, s.TooLong = f.notEvents.n, f.badTime.n, f.tooLong.n
	s.TooDeep, s.OverLimit = f.tooDeep.n, f.overLimit.n
	s.OtherNames += f.names.n
}

func (f *faults) problems(file string, o Options) []model.Problem {
	var out []model.Problem
	add := func(c counterAt, what string) {
		if c.n > 0 {
			out = append(out, model.Problem{File: file, Offset: c.first, What: fmt.Sprintf(what, c.n)})
		}
	}
	add(f.notEvents, "skip %d elements of traceEvents: got no object; want an event")
	add(f.badTime, "skip %d events: got no number of microseconds in ts or dur; want one below 73 years")
	add(f.tooLong, fmt.Sprintf("skip %%d events: longer than %d bytes", o.MaxEventBytes))
	add(f.tooDeep, fmt.Sprintf("skip %%d events: nested deeper than %d levels", maxDepth))
	add(f.overLimit, fmt.Sprintf("skip %%d events: the limit of %d events is reached", o.MaxEvents))
	add(f.names, fmt.Sprintf("drop %%d names or arguments: over %d distinct ones, or too long", o.MaxStrings))
	return out
}
