// SPDX-License-Identifier: Apache-2.0

package pickle

import (
	"fmt"
	"sync"
)

// Machine reads one pickle. It is used once.
type Machine struct {
	// Take may be set before Run. It is given the keys and values, in turn, of each dict
	// that is filled for the first time, and says whether it has made something of its own
	// of them: then the dict stands for its token, and its contents are forgotten. whole
	// is false where the pickle ended within the dict.
	Take func(pairs []Value, whole bool) (token int32, ok bool)

	// Persist may be set before Run. It is given each persistent id when it is read.
	Persist func(id Value)

	scan   Scanner
	policy *Policy
	limits Limits

	stack []Value
	marks []int32 // heights of the stack
	memo  []Value
	arena []Value // of all boxes
	boxes []box
	texts []span
	// pinned: boxes below may be referred to by the memo or by what it has.
	pinned int
}

// NewMachine returns a machine for a pickle, which must not be changed as long as its
// values are used.
func NewMachine(data []byte, policy *Policy, limits Limits) *Machine {
	m := spare.Get().(*Machine)
	m.scan, m.policy, m.limits = Scanner{data: data}, policy, limits.Or(DefaultLimits())
	return m
}

// spare are the machines that were released: most programs read pickles of one kind in turn.
var spare = sync.Pool{New: func() any { return new(Machine) }}

// maxSpare bounds what a released machine keeps, in values.
const maxSpare = 1 << 18

// Release gives the machine's memory to the next one. Neither it nor its values may be used any more.
func (m *Machine) Release() {
	if cap(m.arena)+cap(m.boxes)+cap(m.memo)+cap(m.stack)+cap(m.texts) > maxSpare {
		return
	}
	spare.Put(&Machine{
		stack: m.stack[:0], marks: m.marks[:0], memo: m.memo[:0], arena: m.arena[:0], boxes: m.boxes[:0], texts: m.texts[:0],
	})
}

// Run reads the pickle and returns its value. After ErrTruncated, Salvage has what was
// complete.
func (m *Machine) Run() (Value, error) {
	if len(m.scan.data) > m.limits.Bytes {
		return Value{}, &Error{What: fmt.Sprintf("got a pickle of %d bytes; want at most %d", len(m.scan.data), m.limits.Bytes), Err: ErrLimit}
	}
	if err := m.header(); err != nil {
		return Value{}, err
	}
	quick := m.policy.allowsAll(quickOps[:])
	for {
		if quick {
			m.quick()
		}
		if err := m.scan.Next(); err != nil {
			return Value{}, err
		}
		if !m.policy.allow[m.scan.Op] {
			what := fmt.Sprintf("got an opcode that is not %s; want none that needs code", m.policy.name)
			return Value{}, &Error{Offset: m.scan.At, Op: m.scan.Op, What: what, Err: ErrRefused}
		}
		if m.scan.Op == opStop {
			return m.stop()
		}
		if err := m.step(); err != nil {
			return Value{}, err
		}
	}
}

func (m *Machine) header() error {
	if err := m.scan.Next(); err != nil {
		return err
	}
	if m.scan.Op != opProto || m.scan.Int < 2 || m.scan.Int > 5 {
		return &Error{What: "got no PROTO of 2 to 5; want a pickle to begin with it", Err: ErrRefused}
	}
	return nil
}

func (m *Machine) stop() (Value, error) {
	if len(m.stack) != 1 || len(m.marks) != 0 {
		return Value{}, m.failf("got %d values and %d marks left over; want one value", len(m.stack), len(m.marks))
	}
	if n := len(m.scan.data) - m.scan.pos; n > 0 {
		return Value{}, m.failf("got %d bytes behind it; want none", n)
	}
	return m.stack[0], nil
}

func (m *Machine) failf(format string, args ...any) error {
	return m.scan.fail(fmt.Sprintf(format, args...))
}

// limitf is failf for what is beyond a limit.
func (m *Machine) limitf(format string, args ...any) error {
	return &Error{Offset: m.scan.At, Op: m.scan.Op, What: fmt.Sprintf(format, args...), Err: ErrLimit}
}

// step executes one opcode, those that are frequent first.
func (m *Machine) step() error {
	s := &m.scan
	switch s.Op {
	case opBinGet, opLongBinGet:
		if s.Int >= int64(len(m.memo)) {
			return m.failf("got place %d of the memo; want one below %d", s.Int, len(m.memo))
		}
		return m.push(m.recall(m.memo[s.Int]))
	case opBinInt1, opBinInt2, opBinInt:
		return m.push(Value{n: s.Int, kind: Int})
	case opNone:
		return m.push(Value{})
	case opNewTrue:
		return m.push(Value{n: 1, kind: Bool})
	case opNewFalse:
		return m.push(Value{kind: Bool})
	case opMark:
		if len(m.marks) >= m.limits.Depth {
			return m.limitf("got %d open marks; want at most %d", len(m.marks)+1, m.limits.Depth)
		}
		m.marks = append(m.marks, int32(len(m.stack)))
		return nil
	case opEmptyList:
		return m.pushBox(List, 0)
	case opAppends:
		return m.fromMark(m.appendTo)
	case opEmptyDict:
		return m.pushBox(Dict, 0)
	case opSetItems:
		return m.fromMark(m.setIn)
	case opTuple2:
		return m.pushBox(Tuple, 2)
	case opLong1:
		if s.Text != nil {
			return m.pushText(Big)
		}
		return m.push(Value{n: s.Int, kind: Int})
	case opBinFloat:
		return m.push(Value{n: s.Int, kind: Float})
	case opBinUnicode, opShortBinUnicode, opBinUnicode8:
		return m.pushText(String)
	default:
		return m.stepRare()
	}
}

func (m *Machine) stepRare() error {
	s := &m.scan
	switch s.Op {
	case opBinPut, opLongBinPut:
		return m.put(s.Int)
	case opMemoize:
		return m.put(int64(len(m.memo)))
	case opShortBinBytes, opBinBytes, opBinBytes8:
		return m.pushText(Bytes)
	case opEmptyTuple:
		return m.pushBox(Tuple, 0)
	case opTuple1:
		return m.pushBox(Tuple, 1)
	case opTuple3:
		return m.pushBox(Tuple, 3)
	case opTuple:
		return m.tupleFromMark()
	case opAppend:
		return m.fromTop(1, m.appendTo)
	case opSetItem:
		return m.fromTop(2, m.setIn)
	case opFrame:
		if n := len(s.data) - s.pos; uint64(s.Int) > uint64(n) {
			return s.cut(fmt.Sprintf("got %d bytes; want the %d of a frame", n, uint64(s.Int)))
		}
		return nil
	}
	return m.stepObject()
}

func (m *Machine) push(v Value) error {
	if len(m.stack) >= m.limits.Stack {
		return m.limitf("got %d values that wait for their place; want at most %d", len(m.stack)+1, m.limits.Stack)
	}
	m.stack = append(m.stack, v)
	return nil
}

func (m *Machine) pushText(k Kind) error {
	if len(m.scan.Text) > m.limits.Text {
		return m.limitf("got %d bytes; want at most %d", len(m.scan.Text), m.limits.Text)
	}
	if err := m.room(1); err != nil {
		return err
	}
	end := m.scan.pos
	m.texts = append(m.texts, span{uint32(end - len(m.scan.Text)), uint32(len(m.scan.Text))})
	return m.push(Value{n: int64(len(m.texts) - 1), kind: k})
}

// room reports whether n more values may be held.
func (m *Machine) room(n int) error {
	if held := len(m.arena) + len(m.boxes) + len(m.texts) + n; held > m.limits.Values {
		return m.limitf("got %d values; want at most %d", held, m.limits.Values)
	}
	return nil
}

// put remembers the value on top. Places are given in order by everybody who writes
// pickles; one far ahead would reserve memory for nothing.
func (m *Machine) put(at int64) error {
	if len(m.stack) <= m.floor() {
		return m.failf("got no value; want one to remember")
	}
	v := m.stack[len(m.stack)-1]
	m.share(v)
	switch n := int64(len(m.memo)); {
	case at < n:
		m.memo[at] = v
	case at > n:
		return m.failf("got place %d of the memo; want at most %d, the next", at, n)
	case len(m.memo) >= m.limits.Memo:
		return m.limitf("got %d remembered values; want at most %d", n+1, m.limits.Memo)
	default:
		m.memo = append(m.memo, v)
	}
	return nil
}

// floor is the height of the stack that the last mark protects.
func (m *Machine) floor() int {
	if n := len(m.marks); n > 0 {
		return int(m.marks[n-1])
	}
	return 0
}
