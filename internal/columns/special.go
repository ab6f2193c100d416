// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const (
	// maxDocument bounds a JSON document, bytes. It is the limit of package otelmap.
	maxDocument = 1 << 20
	// refLength is how long a reference to a span is as text, with a blank behind it.
	refLength = 32 + 1 + 16 + 1
)

// ticks returns a time in units, rounded to the nearest.
func ticks(ns, unit int64) int64 {
	n, rest := ns/unit, ns%unit
	switch {
	case 2*rest >= unit:
		n++
	case 2*rest < -unit:
		n--
	}
	return n
}

// unitColumn repeats the unit of times in each row, so that a query over files of several units is right.
func unitColumn() column {
	return column{
		name: inUnits, kind: repeated, required: true, unit: "ns",
		get: func(r *row) value { return value{i: r.unit, ok: true} },
		set: func(r *row, v value) { r.strange = r.strange || v.i != r.unit },
	}
}

func startColumn() column {
	return column{
		name: "start", kind: delta, required: true, unit: inUnits,
		get: func(r *row) value { return value{i: ticks(r.op.Start, r.unit), ok: true} },
		set: func(r *row, v value) { r.op.Start = v.i * r.unit },
	}
}

// durationColumn has the end, too: start and end are rounded, and their difference is stored.
func durationColumn() column {
	return column{
		name: "duration", kind: delta, required: true, unit: inUnits,
		get: func(r *row) value { return value{i: ticks(r.op.End, r.unit) - ticks(r.op.Start, r.unit), ok: true} },
		set: func(r *row, v value) { r.op.End = r.op.Start + v.i*r.unit },
	}
}

// sinceColumn is a stamp, stored as the time from it to the start: that varies less.
func sinceColumn(called string, at func(*row) *optionalInt) column {
	return column{
		name: called, kind: delta, unit: inUnits,
		get: func(r *row) value {
			o := at(r)
			return value{i: ticks(r.op.Start, r.unit) - ticks(o.V, r.unit), ok: o.OK}
		},
		set: func(r *row, v value) { *at(r) = model.Some(r.op.Start - v.i*r.unit) },
	}
}

// linksColumn has the spans that a step works for, with blanks between them.
func linksColumn() column {
	return column{
		name: "links", kind: document, limit: model.MaxStepLinks * refLength, whole: true,
		get: func(r *row) value {
			if len(r.op.Links) == 0 {
				return value{}
			}
			refs := make([]string, 0, min(len(r.op.Links), model.MaxStepLinks))
			for _, l := range r.op.Links[:cap(refs)] {
				refs = append(refs, l.String())
			}
			return value{s: strings.Join(refs, " "), ok: true}
		},
		set: func(r *row, v value) {
			for ref := range strings.SplitSeq(v.s, " ") {
				l, ok := model.ParseSpanRef(ref)
				if !ok || len(r.op.Links) >= model.MaxStepLinks {
					r.strange = true
					return
				}
				r.op.Links = append(r.op.Links, l)
			}
		},
	}
}

func histogramsColumn() column {
	return column{
		name: "summary_histograms", kind: document, limit: maxDocument, whole: true,
		get: func(r *row) value {
			if r.summary == nil {
				return value{}
			}
			return value{s: r.summary.Histograms, ok: r.summary.Histograms != ""}
		},
		set: func(r *row, v value) { r.summarize().Histograms = v.s },
	}
}
