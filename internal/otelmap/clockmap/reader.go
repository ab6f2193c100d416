// SPDX-License-Identifier: Apache-2.0

package clockmap

import (
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// reader reads attributes and keeps the first fault.
type reader struct {
	m   pcommon.Map
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) value(name string, want pcommon.ValueType) (pcommon.Value, bool) {
	v, ok := r.m.Get(name)
	if !ok {
		return v, false
	}
	if v.Type() != want {
		r.fail("read attribute %s: got type %s; want %s", name, v.Type(), want)
		return v, false
	}
	return v, true
}

func (r *reader) text(name string) string {
	if v, ok := r.value(name, pcommon.ValueTypeStr); ok {
		return v.Str()
	}
	return ""
}

// name is a text that must be there, and pass a check.
func (r *reader) name(attribute string, check func(string) error) string {
	s := r.text(attribute)
	if err := check(s); err != nil {
		r.fail("read attribute %s: %w", attribute, err)
	}
	return s
}

// word is a text that may be missing, and is as short as a name.
func (r *reader) word(attribute string) string {
	if r.text(attribute) == "" {
		return ""
	}
	return r.name(attribute, model.CheckClockName)
}

func (r *reader) integer(name string) (int64, bool) {
	if v, ok := r.value(name, pcommon.ValueTypeInt); ok {
		return v.Int(), true
	}
	return 0, false
}

func (r *reader) truth(name string) bool {
	v, ok := r.value(name, pcommon.ValueTypeBool)
	return ok && v.Bool()
}

// number takes an integer too: some SDKs write 0.0 as the integer 0.
func (r *reader) number(name string) (float64, bool) {
	v, ok := r.m.Get(name)
	if !ok {
		return 0, false
	}
	var f float64
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		f = v.Double()
	case pcommon.ValueTypeInt:
		f = float64(v.Int())
	default:
		r.fail("read attribute %s: got type %s; want %s", name, v.Type(), pcommon.ValueTypeDouble)
		return 0, false
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		r.fail("read attribute %s: got %v; want a finite number", name, f)
		return 0, false
	}
	return f, true
}

// maxSize in s is 317 years, beyond 64 bits of ns.
const maxSize = 1e10

// size is a number that must not be negative, nor so large that it overflows.
func (r *reader) size(name string) float64 {
	f, _ := r.number(name)
	if f < 0 || f > maxSize {
		r.fail("read attribute %s: got %v; want 0 to %v", name, f, maxSize)
	}
	return f
}

// limit reads a side of an interval: exact ns, or else seconds rounded by to.
func (r *reader) limit(exact, seconds string, none int64, to func(float64) (int64, bool)) int64 {
	if ns, ok := r.integer(exact); ok {
		return ns
	}
	s, ok := r.number(seconds)
	if !ok {
		return none
	}
	ns, fits := to(s)
	if !fits {
		r.fail("read attribute %s: got %v s; want what fits into 64 bits of ns", seconds, s)
	}
	return ns
}
