// SPDX-License-Identifier: Apache-2.0

package pickle

import "encoding/binary"

// quickOps are what most of a dump consists of. They are executed in one loop without
// calls: a dump has a million of them.
var quickOps = [...]Opcode{
	opBinGet, opLongBinGet, opBinInt1, opBinInt2, opBinInt, opLong1, opNone, opNewTrue, opNewFalse, opMark, opEmptyList, opEmptyDict, opAppends,
}

// quickReach is how many bytes the longest of quickOps takes: LONG1 with 8 bytes.
const quickReach = 10

// quick executes quickOps as long as nothing is unusual about them: tables have room, the
// end is not near, arguments are right. What is unusual is left to step, which knows all
// the rules and reports what breaks them.
func (m *Machine) quick() {
	data, pos, stack := m.scan.data, m.scan.pos, m.stack
	room := min(cap(stack), m.limits.Stack)
	free := m.free()
loop:
	for pos+quickReach <= len(data) && len(stack) < room {
		b := data[pos : pos+quickReach : pos+quickReach]
		var v Value
		switch Opcode(b[0]) {
		case opBinGet:
			if int(b[1]) >= len(m.memo) {
				break loop
			}
			v = m.recall(m.memo[b[1]])
			pos += 2
		case opLongBinGet:
			at := binary.LittleEndian.Uint32(b[1:])
			if int64(at) >= int64(len(m.memo)) {
				break loop
			}
			v = m.recall(m.memo[at])
			pos += 5
		case opBinInt1:
			v = Value{int64(b[1]), Int}
			pos += 2
		case opBinInt2:
			v = Value{int64(binary.LittleEndian.Uint16(b[1:])), Int}
			pos += 3
		case opBinInt:
			v = Value{int64(int32(binary.LittleEndian.Uint32(b[1:]))), Int}
			pos += 5
		case opLong1:
			if b[1] != 8 {
				break loop
			}
			v = Value{int64(binary.LittleEndian.Uint64(b[2:])), Int}
			pos += 10
		case opNone:
			pos++
		case opNewTrue:
			v = Value{1, Bool}
			pos++
		case opNewFalse:
			v = Value{0, Bool}
			pos++
		case opMark:
			if len(m.marks) >= m.limits.Depth {
				break loop
			}
			m.marks = append(m.marks, int32(len(stack)))
			pos++
			continue
		case opEmptyList, opEmptyDict:
			if free--; free < 0 {
				break loop
			}
			v = m.newBox(List)
			if b[0] == byte(opEmptyDict) {
				v.kind = Dict
			}
			pos++
		case opAppends:
			if m.stack = stack; !m.fillList() {
				break loop
			}
			stack, free = m.stack, m.free()
			pos++
			continue
		default:
			break loop
		}
		stack = append(stack, v)
	}
	m.scan.pos, m.stack = pos, stack
}

// free is how many more values may be held.
func (m *Machine) free() int {
	return m.limits.Values - len(m.arena) - len(m.boxes) - len(m.texts)
}

// fillList gives an empty list that nothing else refers to what is above the last mark;
// false, and nothing is done, where anything is unusual.
func (m *Machine) fillList() bool {
	last := len(m.marks) - 1
	if last < 0 {
		return false
	}
	at, floor := int(m.marks[last]), 0
	if last > 0 {
		floor = int(m.marks[last-1])
	}
	if at <= floor || m.stack[at-1].kind != List {
		return false
	}
	b, items := &m.boxes[m.stack[at-1].n], m.stack[at:]
	if b.shared || b.n > 0 || len(items) > m.free() || m.raise(b, items) != nil {
		return false
	}
	b.start, b.n, b.space = int32(len(m.arena)), int32(len(items)), int32(len(items))
	m.arena = append(m.arena, items...)
	m.stack, m.marks = m.stack[:at], m.marks[:last]
	return true
}

// newBox makes an empty list, tuple or dict.
func (m *Machine) newBox(k Kind) Value {
	at := int32(len(m.arena))
	m.boxes = append(m.boxes, box{base: at, start: at, height: 1})
	return Value{int64(len(m.boxes) - 1), k}
}
