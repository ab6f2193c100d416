// SPDX-License-Identifier: Apache-2.0

// Package strict owns how events are read of which nothing may be wrong: what decides over others is
// refused rather than taken in part.
package strict

import (
	"fmt"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lockstep-otel/lockstep/internal/model/cut"
)

// MaxText bounds every text, bytes: a path is not longer.
const MaxText = cut.MaxPath

// Reader reads attributes and keeps the first fault: an event that is not right is refused whole.
type Reader struct {
	M   pcommon.Map
	Err error // the first
}

// Fail notes a fault, unless there was one before.
func (r *Reader) Fail(format string, args ...any) {
	if r.Err == nil {
		r.Err = fmt.Errorf(format, args...)
	}
}

func (r *Reader) value(name string, want pcommon.ValueType) (pcommon.Value, bool) {
	v, ok := r.M.Get(name)
	if !ok {
		return v, false
	}
	if v.Type() != want {
		r.Fail("read attribute %s: got type %s; want %s", name, v.Type(), want)
		return v, false
	}
	return v, true
}

// Text is a text; empty where there is none.
func (r *Reader) Text(name string) string {
	v, ok := r.value(name, pcommon.ValueTypeStr)
	switch {
	case !ok:
		return ""
	case len(v.Str()) > MaxText:
		r.Fail("read attribute %s: got %d bytes; want at most %d", name, len(v.Str()), MaxText)
		return ""
	case !utf8.ValidString(v.Str()):
		r.Fail("read attribute %s: got what is no text: %.20q", name, v.Str())
		return ""
	}
	return v.Str()
}

// Needed is a text that must be there.
func (r *Reader) Needed(name string) string {
	s := r.Text(name)
	if s == "" {
		r.Fail("read attribute %s: got none; want one", name)
	}
	return s
}

// Integer is a number; false where there is none.
func (r *Reader) Integer(name string) (int64, bool) {
	if v, ok := r.value(name, pcommon.ValueTypeInt); ok {
		return v.Int(), true
	}
	return 0, false
}

// Flag reads a boolean; without one it is false.
func (r *Reader) Flag(name string) bool {
	v, ok := r.value(name, pcommon.ValueTypeBool)
	return ok && v.Bool()
}

// Share is a number from 0 to 1, 1 where there is none.
func (r *Reader) Share(name string) float64 {
	v, ok := r.M.Get(name)
	if !ok {
		return 1
	}
	var f float64
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		f = v.Double()
	case pcommon.ValueTypeInt: // as some SDKs write 1.0
		f = float64(v.Int())
	default:
		r.Fail("read attribute %s: got type %s; want %s", name, v.Type(), pcommon.ValueTypeDouble)
		return 0
	}
	if !(f >= 0 && f <= 1) {
		r.Fail("read attribute %s: got %v; want 0 to 1", name, f)
		return 0
	}
	return f
}
