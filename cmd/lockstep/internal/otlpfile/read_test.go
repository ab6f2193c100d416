// SPDX-License-Identifier: Apache-2.0

package otlpfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// batch is one line of the file exporter with one span of the given name.
func batch(name string) string {
	return `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"` + name + `"}]}]}]}`
}

// outcome is what Read handed over: span names, and the offsets of faults.
type outcome struct {
	names  []string
	faults []int64
	errs   []string
}

func read(t *testing.T, r io.Reader, limit int) (outcome, error) {
	t.Helper()
	var o outcome
	err := Read(context.Background(), r, limit, func(td ptrace.Traces) {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					o.names = append(o.names, s.Name())
				}
			}
		}
	}, func(f Fault) {
		o.faults = append(o.faults, f.Offset)
		o.errs = append(o.errs, f.Err.Error())
	})
	return o, err
}

func TestRead(t *testing.T) {
	a, b, c := batch("a"), batch("b"), batch("c")
	indented := strings.ReplaceAll(strings.ReplaceAll(a, "[", "[\n  "), "{", "{\n  ")
	for name, tc := range map[string]struct {
		in     string
		names  []string
		faults []int64
		why    string
	}{
		"a batch a line":           {a + "\n" + b + "\n", []string{"a", "b"}, nil, ""},
		"no newline at the end":    {a + "\r\n" + b, []string{"a", "b"}, nil, ""},
		"one indented object":      {indented, []string{"a"}, nil, ""},
		"empty":                    {"", nil, nil, ""},
		"blank":                    {" \n\t\n", nil, nil, ""},
		"braces in a string":       {batch(`}]{[\"\\`), []string{`}]{["\`}, nil, ""},
		"cut at the end":           {a + "\n" + b[:20], []string{"a"}, []int64{int64(len(a)) + 1}, "ends within it"},
		"cut by the next line":     {b[:20] + "\n" + a + "\n", []string{"a"}, []int64{0}, "cut short"},
		"cut within a string":      {b[:56] + "\n" + a + "\n", []string{"a"}, []int64{0}, "cut short"},
		"not JSON":                 {a + "\nhello {\n" + b, []string{"a", "b"}, []int64{int64(len(a)) + 1}, "got byte 'h'"},
		"JSON of another shape":    {`{"resourceSpans": 7}` + "\n" + a, []string{"a"}, []int64{0}, "decode OTLP JSON"},
		"value beyond the limit":   {a + "\n" + batch(strings.Repeat("x", 200)) + "\n" + c, []string{"a", "c"}, []int64{int64(len(a)) + 1}, "more than 128 bytes"},
		"closing brace on its own": {"}\n" + a, []string{"a"}, []int64{0}, "got byte '}'"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tc.in), iotest.OneByteReader(strings.NewReader(tc.in))} {
				o, err := read(t, r, 128)
				require.NoError(t, err)
				assert.Equal(t, tc.names, o.names)
				assert.Equal(t, tc.faults, o.faults)
				if tc.why != "" {
					require.Len(t, o.errs, 1)
					assert.Contains(t, o.errs[0], tc.why)
				}
			}
		})
	}
}

func TestReadGivesTheReadersErrorAndWhatCameBefore(t *testing.T) {
	broken := errors.New("disk on fire")
	in := batch("a") + "\n"
	o, err := read(t, io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken)), DefaultLimit)
	require.ErrorIs(t, err, broken)
	assert.Equal(t, []string{"a"}, o.names)

	o, err = read(t, io.MultiReader(strings.NewReader(in+in[:20]), iotest.ErrReader(broken)), DefaultLimit)
	require.ErrorIs(t, err, broken)
	assert.Equal(t, []int64{int64(len(in))}, o.faults, "the value it cut is a fault too")
}

func TestReadStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	err := Read(ctx, strings.NewReader(strings.Repeat(batch("a")+"\n", 10)), DefaultLimit,
		func(ptrace.Traces) { n++; cancel() }, func(Fault) {})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 1, n)
}

// endless is one JSON value that never ends.
type endless struct{ left int64 }

func (e *endless) Read(b []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	for i := range b {
		b[i] = '['
	}
	e.left -= int64(len(b))
	return len(b), nil
}

func TestReadHoldsAtMostTheLimit(t *testing.T) {
	s := newSplitter(&endless{left: 64 << 20}, 1<<20)
	v, err := s.next()
	require.NoError(t, err)
	require.Error(t, v.err)
	assert.LessOrEqual(t, cap(s.buf), 2<<20)
	_, err = s.next()
	require.ErrorIs(t, err, io.EOF)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(batch("a") + "\n" + batch("b")))
	f.Add([]byte(batch("a")[:30] + "\n" + batch("b")))
	f.Add([]byte(`{"resourceSpans":[{"resource":{"attributes":[{"key":"k","value":{"arrayValue":{"values":[{}]}}}]}}]}`))
	f.Add([]byte("hello\n{]"))
	f.Fuzz(func(t *testing.T, in []byte) {
		spans, faults := 0, 0
		err := Read(context.Background(), bytes.NewReader(in), 1<<12, func(td ptrace.Traces) { spans += td.SpanCount() },
			func(bad Fault) {
				faults++
				if bad.Offset < 0 || bad.Offset >= int64(len(in)) {
					t.Errorf("fault at %d of %d bytes", bad.Offset, len(in))
				}
			})
		if err != nil {
			t.Errorf("read from memory: %v", err)
		}
		if faults > len(in) || spans > len(in) {
			t.Errorf("%d faults and %d spans of %d bytes", faults, spans, len(in))
		}
	})
}
