// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

func TestBadInput(t *testing.T) {
	k := kernel("k", 1, 120, "")
	tests := []struct {
		name, text string
		err        string // behind "parse x.json: offset "
		kept       int    // kernels
		truncated  bool
	}{
		{"empty", "", "0: unexpected end of file", 0, true},
		{"white space", " \n ", "3: unexpected end of file", 0, true},
		{"no JSON", "hello", "0: neither JSON nor gzip: begins with 'h'", 0, true},
		{"a number", "5", "0: invalid JSON: got '5'; want '{' of a trace", 0, true},
		{"half of gzip's mark", "\x1fabc", "0: neither JSON nor gzip: begins with byte 0x1f", 0, true},
		{"gzip of text", string(packed(t, "hello")), "0: no JSON inside of gzip: begins with 'h'", 0, true},
		{"binary", "\x00\x01", "0: neither JSON nor gzip: begins with byte 0x00", 0, true},
		{"an array", "[1]", "0: not a PyTorch trace: no traceEvents", 0, true},
		{"other JSON", `{"rank": 5}`, "11: not a PyTorch trace: no traceEvents", 0, false},
		{"no list", `{"traceEvents": 5}`, "16: invalid JSON: got '5'; want '[' of traceEvents", 0, true},
		{"cut between events", `{"traceEvents":[` + k + `,`, "", 1, true},
		{"cut in an event", `{"traceEvents":[` + k + `,{"ph":"X","na`, "", 1, true},
		{"cut in a string", `{"traceEvents":[` + k + `],"x":"abc`, "", 1, true},
		{"no comma", `{"traceEvents":[` + k + ` {}]}`, "", 1, true},
		{"no colon", `{"a" 1}`, "5: invalid JSON: got '1'; want ':'", 0, true},
		{"no key", `{1:1}`, "1: invalid JSON: got '1'; want a key", 0, true},
		{"bad value", `{"a":?}`, "5: invalid JSON: got '?'; want a value", 0, true},
		{"brackets cross", `{"traceEvents":[{"args":[1}]}`, "26: invalid JSON: got '}'; want the other closing bracket", 0, true},
		{"bad event", `{"traceEvents":[{"ph" "X"}]}`, `22: invalid JSON: got '"'; want ':'`, 0, true},
		{"bad event value", `{"traceEvents":[{"ph":oops}]}`, "22: invalid JSON: got 'o'; want a value", 0, true},
		{"something behind", `{"traceEvents":[` + k + `]} {`, "", 1, true},
		{"two members without comma", `{"traceEvents":[{"ph":"X" "b":1}]}`, `26: invalid JSON: got '"'; want ',' or '}'`, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr, err := Parse(t.Context(), strings.NewReader(tt.text), "x.json", DefaultOptions())
			require.Error(t, err)
			assert.Contains(t, err.Error(), "parse x.json: offset "+tt.err)
			require.NotNil(t, tr)
			assert.Equal(t, tt.truncated, tr.Stats().Truncated)
			assert.Len(t, ofKind(tr, model.KindCompute), tt.kept)
			invariants(t, tr)
		})
	}
}

// The offset is that of the uncompressed content, also far behind the buffer.
func TestOffsetOfSyntaxError(t *testing.T) {
	text := `{"traceEvents":[` + strings.Repeat(kernel("k", 1, 120, "")+",", 5000)
	_, err := Parse(t.Context(), bytes.NewReader(packed(t, text+"}")), "x.json.gz", DefaultOptions())
	require.Error(t, err)
	assert.Equal(t, "parse x.json.gz: offset "+strconv.Itoa(len(text))+": invalid JSON: got '}'; want a value", err.Error())
	var pe *ParseError
	require.ErrorAs(t, err, &pe)
	assert.Equal(t, "x.json.gz", pe.File)
	assert.Equal(t, int64(len(text)), pe.Offset)
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, err := z.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return buf.Bytes()
}

func TestTruncatedGzip(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(testdata.Recording(t, "slow"), "rank5.json.gz"))
	require.NoError(t, err)
	for _, n := range []int{1, 2, 5, 11, 20, len(whole) / 2, len(whole) - 1} {
		tr, err := Parse(t.Context(), bytes.NewReader(whole[:n]), "rank5.json.gz", DefaultOptions())
		require.Error(t, err, "%d bytes", n)
		assert.Contains(t, err.Error(), "parse rank5.json.gz: offset ")
		if n < len(whole)/2 {
			continue
		}
		require.NotNil(t, tr)
		assert.True(t, tr.Stats().Truncated)
		assert.NotEmpty(t, ofKind(tr, model.KindCompute))
		assert.Equal(t, int64(5), tr.Rank().Rank)
		invariants(t, tr)
	}
	whole[len(whole)-5] ^= 1 // the checksum
	_, err = Parse(t.Context(), bytes.NewReader(whole), "rank5.json.gz", DefaultOptions())
	assert.ErrorContains(t, err, "invalid checksum")
}

func TestLimits(t *testing.T) {
	deep := `{"ph":"X","cat":"kernel","args":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`
	giant := `{"ph":"X","cat":"kernel","name":"` + strings.Repeat(`\"{`, 20000) + `"}`
	badTime := x("kernel", "k", 7, `"soon"`, 3, "")
	negative := x("kernel", "k", 7, 5, -3, "")
	text := trace("", deep, giant, "5", `"x"`, "[[1]]", badTime, negative, kernel("k", 1, 120, ""), kernel("k", 2, 130, ""))
	o := DefaultOptions()
	o.MaxEventBytes = 5000
	o.MaxEvents = 3
	tr, err := Parse(t.Context(), strings.NewReader(text), "x.json", o)
	require.NoError(t, err)
	invariants(t, tr)
	s := tr.Stats()
	assert.Equal(t, [6]int64{1, 1, 3, 2, 1, 3}, [6]int64{s.TooDeep, s.TooLong, s.NotEvents, s.BadTime, s.OverLimit, s.Kept})
	require.Len(t, tr.Problems(), 5)
	byText := map[string]int64{}
	for _, p := range tr.Problems() {
		assert.Equal(t, "x.json", p.File)
		byText[p.What] = p.Offset
	}
	head := len(`{"schemaVersion":1,"traceEvents":[`)
	assert.Equal(t, int64(head), byText["skip 1 events: nested deeper than 64 levels"])
	assert.Equal(t, int64(head+len(deep)+2), byText["skip 1 events: longer than 5000 bytes"])
	assert.Contains(t, byText, "skip 1 events: the limit of 3 events is reached")
}

func TestMaxStrings(t *testing.T) {
	o := DefaultOptions()
	o.MaxStrings = 2
	tr, err := Parse(t.Context(), strings.NewReader(trace("",
		x("kernel", "a", 7, 10, 1, ""), x("kernel", "b", 7, 20, 1, ""), x("kernel", "c", 7, 30, 1, ""), x("kernel", "d", 7, 40, 1, ""))), "x", o)
	require.NoError(t, err)
	invariants(t, tr)
	var names []string
	for _, op := range ofKind(tr, model.KindCompute) {
		names = append(names, op.Name)
	}
	assert.Equal(t, []string{"a", "b", "(other)", "(other)"}, names)
	assert.Equal(t, int64(2), tr.Stats().OtherNames)
	require.Len(t, tr.Problems(), 1)
}

// generated yields n copies of a part between a head and a tail, on one line.
type generated struct {
	head, part, tail string
	n                int
	rest             string
}

func (g *generated) Read(p []byte) (int, error) {
	if g.rest == "" {
		switch {
		case g.head != "":
			g.rest, g.head = g.head, ""
		case g.n > 0:
			g.rest = g.part
			g.n--
		case g.tail != "":
			g.rest, g.tail = g.tail, ""
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

func TestShortGarbage(t *testing.T) {
	const n = 1_000_000
	r := &generated{head: `{"traceEvents":[0`, part: ",[]", tail: "]}", n: n}
	tr, err := Parse(t.Context(), r, "x", DefaultOptions())
	require.NoError(t, err)
	assert.Equal(t, int64(n+1), tr.Stats().NotEvents)
	assert.Len(t, tr.Problems(), 1)
}

// One value of 256 MB on one line, in the middle of the file, costs no memory.
func TestHugeValue(t *testing.T) {
	const size = 256
	part := strings.Repeat(`x\"{`, 1<<18)
	r := &generated{head: `{"INFO":"`, part: part, tail: `","traceEvents":[` + kernel("k", 1, 9, "") + `]}`, n: size}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tr, err := Parse(t.Context(), r, "x", DefaultOptions())
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
	assert.Greater(t, tr.Stats().Bytes, int64(size)<<20)
	assert.Len(t, ofKind(tr, model.KindCompute), 1)
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r := &generated{head: `{"traceEvents":[0`, part: ",[]", n: 1 << 40}
	_, err := Parse(ctx, r, "x", DefaultOptions())
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestReadError(t *testing.T) {
	broken := errors.New("disk on fire")
	tr, err := Parse(t.Context(), io.MultiReader(strings.NewReader(`{"traceEvents":[`+kernel("k", 1, 9, "")), failing{broken}), "x", DefaultOptions())
	require.ErrorIs(t, err, broken)
	assert.Len(t, ofKind(tr, model.KindCompute), 1)
	_, err = Parse(t.Context(), failing{nil}, "x", DefaultOptions())
	require.ErrorIs(t, err, io.ErrNoProgress)
	_, err = ParseFile(t.Context(), filepath.Join(t.TempDir(), "none.json"), DefaultOptions())
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A number has no end in sight: what is too long, where, and the limit are told.
func TestGiantNumber(t *testing.T) {
	o := DefaultOptions()
	o.MaxEventBytes = 5000
	for head, at := range map[string]int{`{"x":`: 5, `{"traceEvents":[`: 16} {
		_, err := Parse(t.Context(), strings.NewReader(head+strings.Repeat("7", 6000)+"]}"), "x.json", o)
		require.Error(t, err)
		assert.Equal(t, "parse x.json: offset "+strconv.Itoa(at)+": got a value longer than 5000 bytes; want at most that", err.Error())
	}
}

// A header that makes no sense is a problem, and costs nothing else.
func TestBadHeader(t *testing.T) {
	tr := parseText(t, "rank_3.json", trace(`"baseTimeNanoseconds":"never","distributedInfo":{"rank":"three"},"host_name":7`, kernel("k", 1, 9, "")))
	assert.Len(t, tr.Problems(), 3)
	assert.Equal(t, int64(3), tr.Rank().Rank)
	assert.Len(t, ofKind(tr, model.KindCompute), 1)
	for _, p := range tr.Problems() {
		assert.Equal(t, int64(3), *p.Rank)
	}
}

// Types are told in the words of the format, and cost no other member.
func TestHeaderTypes(t *testing.T) {
	for text, want := range map[string]string{
		`"distributedInfo":{"rank":"three","world_size":9}`:                "read distributedInfo.rank: got a string; want an integer from 0 to 1048575",
		`"distributedInfo":{"rank":2.5,"world_size":9}`:                    "read distributedInfo.rank: got 2.5; want an integer from 0 to 1048575",
		`"distributedInfo":{"rank":[3],"world_size":9}`:                    "read distributedInfo.rank: got a list; want an integer from 0 to 1048575",
		`"distributedInfo":{"backend":7,"world_size":9}`:                   "read distributedInfo.backend: got a number; want a string",
		`"distributedInfo":{"pg_config":true,"world_size":9}`:              "read distributedInfo.pg_config: got true or false; want a list",
		`"distributedInfo":{"world_size":9,"pg_config":[{"pg_size":"x"}]}`: "read distributedInfo.pg_config.pg_size: got a string; want an integer",
		`"distributedInfo":[]`:                                             "read distributedInfo: got a list; want an object",
		`"host_name":{}`:                                                   "read host_name: got an object; want a string",
	} {
		tr := parseText(t, "rank_3.json", trace(text, kernel("k", 1, 9, "")))
		require.Len(t, tr.Problems(), 1, text)
		assert.Equal(t, want, tr.Problems()[0].What)
		assert.Equal(t, int64(3), tr.Rank().Rank)
		assert.Equal(t, strings.Contains(text, "world_size"), tr.Rank().WorldSize.OK, text)
	}
}

// A file that is small on disk may be endless when it is unpacked, or have holes.
func TestParse_MoreThanMaxBytes_IsTooLarge(t *testing.T) {
	text := `{"traceEvents":[` + kernel("k", 1, 120, "") + `],"x":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, content := range map[string]string{"plain": text, "gzip": string(packed(t, text))} {
		o := DefaultOptions()
		o.MaxBytes = int64(len(text))
		_, err := Parse(t.Context(), strings.NewReader(content), "x.json", o)
		require.NoError(t, err, name)
		o.MaxBytes--
		tr, err := Parse(t.Context(), strings.NewReader(content), "x.json", o)
		require.ErrorIs(t, err, ErrTooLarge, name)
		require.ErrorContains(t, err, "want at most "+strconv.FormatInt(o.MaxBytes, 10), name)
		assert.True(t, tr.Stats().Truncated, name)
		assert.Equal(t, o.MaxBytes, tr.Stats().Bytes, "no more is read")
	}
}
