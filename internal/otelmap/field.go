// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// field binds one attribute to one field of T.
type field[T any] struct {
	name string
	put  func(*T, pcommon.Map)
	get  func(*T, pcommon.Value) outcome
}

// outcome is what became of a value that was read.
type outcome uint8

const (
	taken outcome = iota
	mistyped
	shortened // a text beyond its limit
)

// typed is the outcome of a value that cannot be too long.
func typed(ok bool) outcome {
	if ok {
		return taken
	}
	return mistyped
}

// table is all attributes of T, in the order in which they are written.
type table[T any] struct {
	fields []field[T]
	byName map[string]*field[T]
}

func newTable[T any](fields ...field[T]) *table[T] {
	t := &table[T]{fields: fields, byName: make(map[string]*field[T], len(fields))}
	for i := range fields {
		t.byName[fields[i].name] = &fields[i]
	}
	return t
}

// write puts every known value of v into m.
func (t *table[T]) write(v *T, m pcommon.Map) {
	for i := range t.fields {
		t.fields[i].put(v, m)
	}
}

// read fills v from m. Attributes that are not in the table are left alone; n notes each of the
// wrong type, and each text that is too long.
func (t *table[T]) read(v *T, m pcommon.Map, n notes) {
	for name, value := range m.All() {
		f := t.byName[name]
		if f == nil {
			continue
		}
		if o := f.get(v, value); o != taken {
			n.note(name, value.Type(), o)
		}
	}
}

// str is a name: a string of at most cut.MaxName bytes that is absent where empty.
func str[T any, S ~string](name string, at func(*T) *S) field[T] {
	return text(name, cut.MaxName, at)
}

// long is a string of at most cut.MaxLong bytes that is absent where empty.
func long[T any, S ~string](name string, at func(*T) *S) field[T] {
	return text(name, cut.MaxLong, at)
}

// text is a string of at most limit bytes, cut when it is read and when it is written.
func text[T any, S ~string](name string, limit int, at func(*T) *S) field[T] {
	return field[T]{
		name: name,
		put: func(t *T, m pcommon.Map) {
			s := *at(t)
			if s == "" {
				return
			}
			if len(s) > limit {
				s = cut.Bytes(s, limit)
			}
			m.PutStr(name, string(s))
		},
		get: func(t *T, v pcommon.Value) outcome {
			if v.Type() != pcommon.ValueTypeStr {
				return mistyped
			}
			s := v.Str()
			if len(s) > limit {
				*at(t) = S(cut.Bytes(s, limit))
				return shortened
			}
			*at(t) = S(s)
			return taken
		},
	}
}

// num is an integer that is always present.
func num[T any](name string, at func(*T) *int64) field[T] {
	return field[T]{
		name: name,
		put:  func(t *T, m pcommon.Map) { m.PutInt(name, *at(t)) },
		get:  func(t *T, v pcommon.Value) outcome { return typed(getInt(v, at(t))) },
	}
}

// optInt is an integer that may be unknown.
func optInt[T any](name string, at func(*T) *model.Optional[int64]) field[T] {
	return field[T]{
		name: name,
		put: func(t *T, m pcommon.Map) {
			if o := at(t); o.OK {
				m.PutInt(name, o.V)
			}
		},
		get: func(t *T, v pcommon.Value) outcome {
			o := at(t)
			o.OK = getInt(v, &o.V)
			return typed(o.OK)
		},
	}
}

// float is a number that is always present.
func float[T any](name string, at func(*T) *float64) field[T] {
	return field[T]{
		name: name,
		put:  func(t *T, m pcommon.Map) { m.PutDouble(name, *at(t)) },
		get:  func(t *T, v pcommon.Value) outcome { return typed(getDouble(v, at(t))) },
	}
}

// optFloat is a number that may be unknown.
func optFloat[T any](name string, at func(*T) *model.Optional[float64]) field[T] {
	return field[T]{
		name: name,
		put: func(t *T, m pcommon.Map) {
			if o := at(t); o.OK {
				m.PutDouble(name, o.V)
			}
		},
		get: func(t *T, v pcommon.Value) outcome {
			o := at(t)
			o.OK = getDouble(v, &o.V)
			return typed(o.OK)
		},
	}
}

// flag is a bool that is absent where false.
func flag[T any](name string, at func(*T) *bool) field[T] {
	return field[T]{
		name: name,
		put: func(t *T, m pcommon.Map) {
			if *at(t) {
				m.PutBool(name, true)
			}
		},
		get: func(t *T, v pcommon.Value) outcome {
			if v.Type() != pcommon.ValueTypeBool {
				return mistyped
			}
			*at(t) = v.Bool()
			return taken
		},
	}
}

func getInt(v pcommon.Value, to *int64) bool {
	if v.Type() != pcommon.ValueTypeInt {
		return false
	}
	*to = v.Int()
	return true
}

// getDouble takes an integer too: some SDKs write 0.0 as the integer 0.
func getDouble(v pcommon.Value, to *float64) bool {
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		*to = v.Double()
	case pcommon.ValueTypeInt:
		*to = float64(v.Int())
	default:
		return false
	}
	return true
}
