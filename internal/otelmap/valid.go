// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// fault is why a span of an operation is left out. Spans with equal what and
// want are one problem, of which the first got is told.
type fault struct {
	what, got, want string
}

func (f *fault) String() string {
	return fmt.Sprintf("%s: got %s; want %s", f.what, f.got, f.want)
}

// maxShown bounds, in bytes, what is told of a value.
const maxShown = 40

// scalar returns a value as text, "" for one that holds others: these may be nested deeply, and
// render to far more than a person reads.
func scalar(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeMap, pcommon.ValueTypeSlice, pcommon.ValueTypeBytes:
		return ""
	}
	return v.AsString()
}

func shown(v pcommon.Value) string {
	s := scalar(v)
	if len(s) > maxShown {
		s = s[:maxShown] + "..."
	}
	if v.Type() == pcommon.ValueTypeInt {
		return s
	}
	return fmt.Sprintf("%s %q", v.Type(), s)
}

const wantCount = "an integer of at least 0"

func attributeFault(name string, v pcommon.Value, want string) *fault {
	return &fault{what: "attribute " + name, got: shown(v), want: want}
}

// wantKind lists the kinds of operations.
const wantKind = "one of " + string(model.KindCompute) + ", " + string(model.KindCollective) + ", " + string(model.KindSend) + ", " +
	string(model.KindRecv) + ", " + string(model.KindCopy) + ", " + string(model.KindHost) + ", " + string(model.KindScope) + ", " + string(model.KindStep)

func knownKind(k model.OpKind) bool {
	switch k {
	case model.KindCompute, model.KindCollective, model.KindSend, model.KindRecv,
		model.KindCopy, model.KindHost, model.KindScope, model.KindStep:
		return true
	}
	return false
}

// rankOf reads the rank that a resource names.
func rankOf(m pcommon.Map) (int64, *fault) {
	v, ok := m.Get(semconv.Rank)
	switch {
	case !ok:
		return 0, &fault{what: "attribute " + semconv.Rank + " of the resource", got: "none", want: wantCount}
	case v.Type() != pcommon.ValueTypeInt || v.Int() < 0:
		f := attributeFault(semconv.Rank, v, wantCount)
		f.what += " of the resource"
		return 0, f
	}
	return v.Int(), nil
}

// faultOf says why an operation can not be true, nil where it can.
func faultOf(s ptrace.Span, op *model.Op) *fault {
	start, end := s.StartTimestamp(), s.EndTimestamp()
	switch {
	case start > math.MaxInt64:
		return timeFault("start", start)
	case end > math.MaxInt64:
		return timeFault("end", end)
	case end < start:
		return &fault{
			what: "end", got: strconv.FormatUint(uint64(end), 10) + " with start " + strconv.FormatUint(uint64(start), 10),
			want: "an end that is not before the start",
		}
	case op.Step.OK && op.Step.V >= 0:
		return nil
	}
	if v, ok := s.Attributes().Get(semconv.Step); ok {
		return attributeFault(semconv.Step, v, wantCount)
	}
	return nil
}

func timeFault(what string, got pcommon.Timestamp) *fault {
	return &fault{what: what, got: strconv.FormatUint(uint64(got), 10), want: "nanoseconds since 1970, at most " + strconv.FormatInt(math.MaxInt64, 10)}
}
