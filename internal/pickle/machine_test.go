// SPDX-License-Identifier: Apache-2.0

package pickle

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// show writes a value as Python would, as deep as asked.
func show(m *Machine, v Value, depth int) string {
	if depth == 0 {
		return "..."
	}
	var parts []string
	for _, item := range m.Items(v) {
		parts = append(parts, show(m, item, depth-1))
	}
	switch v.Kind() {
	case None:
		return "None"
	case Bool:
		return map[int64]string{0: "False", 1: "True"}[v.Int()]
	case Int:
		return fmt.Sprint(v.Int())
	case Float:
		return fmt.Sprint(v.Float())
	case Big:
		return fmt.Sprintf("big%x", m.Text(v))
	case String:
		return fmt.Sprintf("%q", m.Text(v))
	case Bytes:
		return fmt.Sprintf("b%q", m.Text(v))
	case List:
		return "[" + strings.Join(parts, " ") + "]"
	case Tuple:
		return "(" + strings.Join(parts, " ") + ")"
	}
	if token, ok := m.Taken(v); ok {
		return fmt.Sprintf("<%d>", token)
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func run(t *testing.T, pickle string) (*Machine, Value) {
	t.Helper()
	m := NewMachine([]byte(pickle), DataOnly, Limits{})
	v, err := m.Run()
	require.NoError(t, err)
	return m, v
}

// The bytes are those of the protocol's description, pickletools.
func TestValues(t *testing.T) {
	for _, tt := range []struct{ name, pickle, want string }{
		{"none", "\x80\x02N.", "None"},
		{"truth", "\x80\x02\x88\x89\x86.", "(True False)"},
		{"one byte", "\x80\x02K\xff.", "255"},
		{"two bytes", "\x80\x02M\x01\x02.", "513"},
		{"four bytes", "\x80\x02J\xfe\xff\xff\xff.", "-2"},
		{"long of none", "\x80\x02\x8a\x00.", "0"},
		{"long of one byte", "\x80\x02\x8a\x01\xff.", "-1"},
		{"long of two bytes", "\x80\x02\x8a\x02\x00\x80.", "-32768"},
		{"long of eight bytes", "\x80\x02\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40.", "4611686018427387904"},
		{"long of nine bytes", "\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.", "bigffffffffffffffff00"},
		{"float", "\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00.", "1.5"},
		{"text", "\x80\x02X\x02\x00\x00\x00abq\x00.", `"ab"`},
		{"short text", "\x80\x04\x8c\x02ab\x94.", `"ab"`},
		{"long text", "\x80\x04\x8d\x02\x00\x00\x00\x00\x00\x00\x00ab.", `"ab"`},
		{"bytes", "\x80\x03C\x02abB\x01\x00\x00\x00c\x86.", `(b"ab" b"c")`},
		{"empty", "\x80\x02]})\x87.", "([] {} ())"},
		{"tuples", "\x80\x02K\x01\x85K\x02K\x03\x86(K\x04K\x05K\x06K\x07t\x87.", "((1) (2 3) (4 5 6 7))"},
		{"append", "\x80\x02]K\x01a]K\x02aa.", "[1 [2]]"},
		{"batches", "\x80\x02](K\x01K\x02e(K\x03e.", "[1 2 3]"},
		{"lists that grow in turn", "\x80\x02(](]q\x00]q\x01eh\x00K\x01ah\x01K\x02ah\x00K\x03ah\x01K\x04at.", "([[1 3] [2 4]] [1 3] [2 4] [1 3] [2 4])"},
		{"dict", "\x80\x02}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00bNu.", `{"a" 1 "b" None}`},
		{"dict by ones", "\x80\x02}K\x01K\x02sK\x03K\x04s.", "{1 2 3 4}"},
		{"memo", "\x80\x02K\x07q\x00h\x00j\x00\x00\x00\x00\x87.", "(7 7 7)"},
		{"memo replaced", "\x80\x02K\x07q\x00K\x08q\x00h\x00\x87.", "(7 8 8)"},
		{"a frame", "\x80\x04\x95\x03\x00\x00\x00\x00\x00\x00\x00K\x01.", "1"},
		{"itself", "\x80\x02]q\x00h\x00a.", "[[[[...]]]]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, v := run(t, tt.pickle)
			assert.Equal(t, tt.want, show(m, v, 4))
		})
	}
}

func TestRefused(t *testing.T) {
	for _, tt := range []struct{ name, pickle, want string }{
		{"code", "\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "offset 2: GLOBAL: got an opcode that is not data only; want none that needs code"},
		{"code by stack", "\x80\x04\x8c\x02os\x8c\x06system\x93.", "offset 14: STACK_GLOBAL: got an opcode that is not data only; want none that needs code"},
		{"a call", "\x80\x02NNR.", "offset 4: REDUCE: got an opcode that is not data only; want none that needs code"},
		{"an instance", "\x80\x02(ios\nsystem\n.", "offset 3: INST: got an opcode that is not data only; want none that needs code"},
		{"state", "\x80\x02NNb.", "offset 4: BUILD: got an opcode that is not data only; want none that needs code"},
		{"an object of elsewhere", "\x80\x02NQ.", "offset 3: BINPERSID: got an opcode that is not data only; want none that needs code"},
		{"text protocol", "(lp0\n.", "offset 0: got no PROTO of 2 to 5; want a pickle to begin with it"},
		{"protocol 6", "\x80\x06N.", "offset 0: got no PROTO of 2 to 5; want a pickle to begin with it"},
		{"no opcode", "\x80\x02\xff.", "offset 2: 0xff: got an unknown opcode; want one of the protocols 2 to 5"},
		{"second protocol", "\x80\x02\x80\x02N.", "offset 2: PROTO: got it out of place; want it at the beginning only"},
		{"trailing bytes", "\x80\x02N.N", "offset 3: STOP: got 1 bytes behind it; want none"},
		{"two values", "\x80\x02NN.", "offset 4: STOP: got 2 values and 0 marks left over; want one value"},
		{"no value", "\x80\x02.", "offset 2: STOP: got 0 values and 0 marks left over; want one value"},
		{"mark left over", "\x80\x02(.", "offset 3: STOP: got 0 values and 1 marks left over; want one value"},
		{"nothing remembered", "\x80\x02h\x00.", "offset 2: BINGET: got place 0 of the memo; want one below 0"},
		{"nothing to remember", "\x80\x02q\x00.", "offset 2: BINPUT: got no value; want one to remember"},
		{"memo reserved", "\x80\x02Nr\xff\xff\xff\xff.", "offset 3: LONG_BINPUT: got place 4294967295 of the memo; want at most 0, the next"},
		{"no mark", "\x80\x02]e.", "offset 3: APPENDS: got no mark; want one"},
		{"no list", "\x80\x02(e.", "offset 3: APPENDS: got no value below the mark; want a list or dict"},
		{"beyond a mark", "\x80\x02](K\x01a.", "offset 6: APPEND: got 1 values; want 1 and a list or dict"},
		{"not a list", "\x80\x02NNa.", "offset 4: APPEND: got None; want a list to append to"},
		{"not a dict", "\x80\x02](NNu.", "offset 6: SETITEMS: got a list; want a dict to set in"},
		{"key without value", "\x80\x02}(Nu.", "offset 5: SETITEMS: got 1 values; want keys and values in turn"},
		{"tuple of too few", "\x80\x02N\x86.", "offset 3: TUPLE2: got 1 values; want 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewMachine([]byte(tt.pickle), DataOnly, Limits{}).Run()
			require.EqualError(t, err, tt.want)
			assert.NotErrorIs(t, err, ErrTruncated)
			assert.NotErrorIs(t, err, ErrLimit)
		})
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct{ name, pickle, want string }{
		{"before its end", "\x80\x02N", "offset 3: got no more bytes; want an opcode"},
		{"a number", "\x80\x02M\x01", "offset 2: BININT2: got 1 bytes of argument; want all of it"},
		{"a long", "\x80\x02\x8a\x08\x00", "offset 2: LONG1: got 2 bytes of argument; want all of it"},
		{"a text", "\x80\x02X\xff\xff\xff\x7fa", "offset 2: BINUNICODE: got 1 bytes; want the 2147483647 that are declared"},
		{"a long text", "\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xffa", "offset 2: BINUNICODE8: got 1 bytes; want the 18446744073709551615 that are declared"},
		{"a frame", "\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff.", "offset 2: FRAME: got 1 bytes; want the 18446744073709551615 of a frame"},
		{"nothing", "", "offset 0: got no more bytes; want an opcode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewMachine([]byte(tt.pickle), DataOnly, Limits{}).Run()
			require.EqualError(t, err, tt.want)
			assert.ErrorIs(t, err, ErrTruncated)
		})
	}
}

func TestLimits(t *testing.T) {
	many := func(s string, n int) string { return "\x80\x02" + strings.Repeat(s, n) }
	for _, tt := range []struct {
		name, pickle string
		limits       Limits
		want         string
	}{
		{"bytes", many("N", 9), Limits{Bytes: 10}, "offset 0: got a pickle of 11 bytes; want at most 10"},
		{"text", "\x80\x02X\x03\x00\x00\x00abc.", Limits{Text: 2}, "offset 2: BINUNICODE: got 3 bytes; want at most 2"},
		{"stack", many("N", 9), Limits{Stack: 8}, "offset 10: NONE: got 9 values that wait for their place; want at most 8"},
		{"memo", many("N\x94", 9), Limits{Memo: 8}, "offset 19: MEMOIZE: got 9 remembered values; want at most 8"},
		{"boxes", many("]", 9), Limits{Values: 8}, "offset 10: EMPTY_LIST: got 9 values; want at most 8"},
		{"values", many("](NNNNNe", 9), Limits{Values: 8}, "offset 17: APPENDS: got 12 values; want at most 8"},
		{"marks", many("](", 9), Limits{Depth: 8}, "offset 19: MARK: got 9 open marks; want at most 8"},
		{"tuples in tuples", "\x80\x02N" + strings.Repeat("\x85", 9), Limits{Depth: 8}, "offset 11: TUPLE1: got values nested deeper than 8; want at most that"},
		{"lists in lists", many("]", 9) + strings.Repeat("a", 8), Limits{Depth: 8}, "offset 18: APPEND: got values nested deeper than 8; want at most that"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewMachine([]byte(tt.pickle), DataOnly, tt.limits).Run()
			require.ErrorIs(t, err, ErrLimit)
			assert.NotErrorIs(t, err, ErrTruncated)
			assert.EqualError(t, err, tt.want)
		})
	}
}

// Whatever a pickle declares or repeats, its reading takes memory as its bytes do.
func TestMemory(t *testing.T) {
	for name, pickle := range map[string]string{
		"declared text":     "\x80\x02X\xff\xff\xff\x7f",
		"declared bytes":    "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
		"declared frame":    "\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.",
		"far memo":          "\x80\x02Nr\xff\xff\xff\xff.",
		"lists of itself":   "\x80\x02]q\x00(" + strings.Repeat("h\x00", 5000) + "e.",
		"lists in turn":     "\x80\x02]q\x00]q\x01" + strings.Repeat("h\x00Nah\x01Na", 1000) + "\x87.",
		"a doubling tuple":  "\x80\x02N" + strings.Repeat("q\x00h\x00\x86", 60) + ".",
		"dicts of one list": "\x80\x02]q\x00(" + strings.Repeat("}(Nh\x00u", 1000) + "e.",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			m := NewMachine([]byte(pickle), DataOnly, Limits{})
			_, err := m.Run()
			runtime.ReadMemStats(&after)
			_ = err // some are refused, some are strange and small
			// A value takes 16 bytes, a container 28, tables grow by doubling: 256 bytes for
			// each byte is far above, and far below what is declared.
			assert.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10+256*len(pickle)))
		})
	}
}

func TestTake(t *testing.T) {
	const inner = "}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00b](K\x02K\x03eu"
	take := func(m *Machine) *[]string {
		var got []string
		m.Take = func(pairs []Value, whole bool) (int32, bool) {
			if len(pairs) != 4 {
				return 0, false
			}
			var s []string
			for _, v := range pairs {
				s = append(s, show(m, v, 3))
			}
			got = append(got, fmt.Sprint(strings.Join(s, " "), " ", whole))
			return int32(len(got)), true
		}
		return &got
	}
	t.Run("contents are forgotten", func(t *testing.T) {
		m := NewMachine([]byte("\x80\x02]("+strings.Repeat(inner, 100)+"e."), DataOnly, Limits{})
		got := take(m)
		v, err := m.Run()
		require.NoError(t, err)
		require.Len(t, *got, 100)
		assert.Equal(t, `"a" 1 "b" [2 3] true`, (*got)[99])
		assert.True(t, strings.HasPrefix(show(m, v, 2), "[<1> <2> <3> "))
		assert.Len(t, m.boxes, 101)
		assert.Len(t, m.arena, 100)
	})
	t.Run("what is remembered stays", func(t *testing.T) {
		const shared = "}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00b]q\x00(K\x02K\x03eu"
		m := NewMachine([]byte("\x80\x02]("+shared+inner+"h\x00e."), DataOnly, Limits{})
		take(m)
		v, err := m.Run()
		require.NoError(t, err)
		assert.Equal(t, "[<1> <2> [2 3]]", show(m, v, 3))
	})
	t.Run("what grows what is remembered stays", func(t *testing.T) {
		// The list is made before the dict, and gets a list that is made within it.
		const grows = "}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00bh\x00](K\x05eau"
		m := NewMachine([]byte("\x80\x02]q\x00"+grows+inner+"\x87."), DataOnly, Limits{})
		take(m)
		v, err := m.Run()
		require.NoError(t, err)
		assert.Equal(t, "([[5]] <1> <2>)", show(m, v, 4))
	})
}

// A list of two dicts in a dict, cut at every byte: what was complete is there.
func TestSalvage(t *testing.T) {
	const entry = "}(X\x01\x00\x00\x00aK\x01X\x01\x00\x00\x00bK\x02u"
	const pickle = "\x80\x02}(X\x01\x00\x00\x00vK\x09X\x01\x00\x00\x00e](" + entry + entry + "eu."
	for cut := range len(pickle) {
		m := NewMachine([]byte(pickle[:cut]), DataOnly, Limits{})
		m.Take = func(pairs []Value, whole bool) (int32, bool) {
			return map[bool]int32{true: 1, false: -1}[whole], len(pairs) > 0 && m.Text(pairs[0]) != nil && string(m.Text(pairs[0])) == "a"
		}
		_, err := m.Run()
		require.ErrorIs(t, err, ErrTruncated)
		v, ok := m.Salvage()
		got := "nothing"
		if ok {
			got = show(m, v, 5)
		}
		start := strings.Index(pickle, entry)
		switch {
		case cut < 3:
			assert.Equal(t, "nothing", got)
		case cut == start:
			assert.Equal(t, `{"v" 9 "e" []}`, got)
		case cut == start+len(entry):
			assert.Equal(t, `{"v" 9 "e" [<1>]}`, got)
		case cut == len(pickle)-4:
			assert.Equal(t, `{"v" 9 "e" [<1> <-1>]}`, got)
		case cut == len(pickle)-1:
			assert.Equal(t, `{"v" 9 "e" [<1> <1>]}`, got)
		}
	}
}

func TestScannerReadsEveryOpcode(t *testing.T) {
	data := "cos\nsystem\nI12\nV\xc3\xa4\n\x8b\x02\x00\x00\x00\x01\x02\x96\x01\x00\x00\x00\x00\x00\x00\x00zQ."
	s := NewScanner([]byte(data))
	var got []string
	for {
		require.NoError(t, s.Next())
		got = append(got, fmt.Sprintf("%v %q", s.Op, s.Text))
		if s.Op == opStop {
			break
		}
	}
	assert.Equal(t, []string{
		`GLOBAL "os\nsystem"`, `INT "12"`, `UNICODE "ä"`, `LONG4 "\x01\x02"`, `BYTEARRAY8 "z"`, `BINPERSID "z"`, `STOP "z"`,
	}, got)
	require.ErrorIs(t, s.Next(), ErrTruncated)
}

func TestErrorsCarryTheirPlace(t *testing.T) {
	_, err := NewMachine([]byte("\x80\x02Q."), DataOnly, Limits{}).Run()
	var e *Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, 2, e.Offset)
	assert.Equal(t, "BINPERSID", e.Op.String())
}

// A machine whose memory another one used before knows nothing of that.
func TestReleasedMemoryIsEmpty(t *testing.T) {
	for range 10 {
		m := NewMachine([]byte("\x80\x02](X\x01\x00\x00\x00aq\x00X\x01\x00\x00\x00bq\x01h\x00e."), DataOnly, Limits{})
		list, err := m.Run()
		require.NoError(t, err)
		assert.Equal(t, 0, m.Items(list)[0].TextID())
		assert.Equal(t, "a", string(m.Text(m.Items(list)[2])))
		m.Release()
		for _, of := range []string{"\x80\x02h\x00.", "\x80\x02h\x01."} { // from the memo
			m = NewMachine([]byte(of), DataOnly, Limits{})
			_, err = m.Run()
			require.ErrorContains(t, err, "of the memo")
			m.Release()
		}
		m = NewMachine([]byte("\x80\x02.."), DataOnly, Limits{}) // from the stack
		_, err = m.Run()
		require.ErrorContains(t, err, "got 0 values")
		m.Release()
	}
}
