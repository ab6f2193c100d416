// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// kind is how the values of a column are stored.
type kind uint8

const (
	delta    kind = iota // int64, DELTA_BINARY_PACKED
	repeated             // int64 of few values, in a dictionary
	double               // double, BYTE_STREAM_SPLIT
	flag                 // boolean, PLAIN
	name                 // string of few values, in a dictionary
	document             // string of many values, PLAIN
)

// value is one value of any kind; ok is false where there is none.
type value struct {
	i  int64
	f  float64
	s  string
	ok bool
}

// row is one operation, as the columns read and write it.
type row struct {
	rank    *model.Rank
	op      *model.Op
	summary *model.Summary // nil: the operation has none
	unit    int64          // of stamps and durations, ns
	strange bool           // a value that the format does not have was read
}

// column binds one column of the file to one field of a row.
type column struct {
	name     string
	kind     kind
	required bool
	unit     string // as the document has it; "" for none
	limit    int    // bytes of a text
	whole    bool   // a text over the limit is left out, not cut
	get      func(*row) value
	set      func(*row, value)
}

type (
	optionalInt   = model.Optional[int64]
	optionalFloat = model.Optional[float64]
)

// text is a name that is absent where it is empty.
func text[S ~string](called string, at func(*row) *S) column {
	return column{
		name: called, kind: name, limit: cut.MaxName,
		get: func(r *row) value { s := *at(r); return value{s: string(s), ok: s != ""} },
		set: func(r *row, v value) { *at(r) = S(v.s) },
	}
}

// long is a text that a person reads as a whole.
func long(called string, at func(*row) *string) column {
	c := text(called, at)
	c.limit = cut.MaxLong
	return c
}

// integer is an int64 that is always present.
func integer(called string, k kind, unit string, at func(*row) *int64) column {
	return column{
		name: called, kind: k, required: true, unit: unit,
		get: func(r *row) value { return value{i: *at(r), ok: true} },
		set: func(r *row, v value) { *at(r) = v.i },
	}
}

// count is an int64 that is absent where it is 0.
func count(called string, at func(*row) *int64) column {
	return column{
		name: called, kind: delta,
		get: func(r *row) value { i := *at(r); return value{i: i, ok: i != 0} },
		set: func(r *row, v value) { *at(r) = v.i },
	}
}

// maybe is an int64 that may be unknown.
func maybe(called string, k kind, unit string, at func(*row) *optionalInt) column {
	return column{
		name: called, kind: k, unit: unit,
		get: func(r *row) value { o := at(r); return value{i: o.V, ok: o.OK} },
		set: func(r *row, v value) { *at(r) = model.Some(v.i) },
	}
}

// number is a time in seconds that may be unknown.
func number(called string, at func(*row) *optionalFloat) column {
	return column{
		name: called, kind: double, unit: inSeconds,
		get: func(r *row) value { o := at(r); return value{f: o.V, ok: o.OK} },
		set: func(r *row, v value) { *at(r) = model.Some(v.f) },
	}
}

// boolean is a flag, which is always known.
func boolean(called string, at func(*row) *bool) column {
	return column{
		name: called, kind: flag, required: true,
		get: func(r *row) value {
			v := value{ok: true}
			if *at(r) {
				v.i = 1
			}
			return v
		},
		set: func(r *row, v value) { *at(r) = v.i != 0 },
	}
}

// share is a time in seconds of the summary, which a row has or not.
func share(called string, at func(*model.Summary) *float64) column {
	return column{
		name: called, kind: double, unit: inSeconds,
		get: func(r *row) value {
			if r.summary == nil {
				return value{}
			}
			return value{f: *at(r.summary), ok: true}
		},
		set: func(r *row, v value) { *at(r.summarize()) = v.f },
	}
}

// total is a count of the summary.
func total(called string, at func(*model.Summary) *int64) column {
	return column{
		name: called, kind: delta,
		get: func(r *row) value {
			if r.summary == nil {
				return value{}
			}
			return value{i: *at(r.summary), ok: true}
		},
		set: func(r *row, v value) { *at(r.summarize()) = v.i },
	}
}

// summarize returns the summary of a row, which has one from then on.
func (r *row) summarize() *model.Summary {
	if r.summary == nil {
		r.summary = &model.Summary{}
	}
	return r.summary
}
