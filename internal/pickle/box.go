// SPDX-License-Identifier: Apache-2.0

package pickle

// pushBox makes a list, tuple or dict of the n values on top.
func (m *Machine) pushBox(k Kind, n int) error {
	at := len(m.stack) - n
	if at < m.floor() {
		return m.failf("got %d values; want %d", len(m.stack)-m.floor(), n)
	}
	if err := m.room(1); err != nil {
		return err
	}
	v := m.newBox(k)
	if n > 0 {
		if err := m.extend(&m.boxes[v.n], m.stack[at:]); err != nil {
			return err
		}
		m.stack = m.stack[:at]
	}
	return m.push(v)
}

func (m *Machine) tupleFromMark() error { return m.tupleFromMarkAs(Tuple) }

func (m *Machine) tupleFromMarkAs(k Kind) error {
	if len(m.marks) == 0 {
		return m.failf("got no mark; want one")
	}
	n := len(m.stack) - m.floor()
	m.marks = m.marks[:len(m.marks)-1]
	return m.pushBox(k, n)
}

// fromMark hands what lies above the last mark, and the value below it, to do.
func (m *Machine) fromMark(do func(to Value, items []Value, whole bool) error) error {
	if len(m.marks) == 0 {
		return m.failf("got no mark; want one")
	}
	at := m.floor()
	m.marks = m.marks[:len(m.marks)-1]
	if at <= m.floor() {
		return m.failf("got no value below the mark; want a list or dict")
	}
	err := do(m.stack[at-1], m.stack[at:], true)
	m.stack = m.stack[:at]
	return err
}

// fromTop hands the n values on top, and the one below them, to do.
func (m *Machine) fromTop(n int, do func(to Value, items []Value, whole bool) error) error {
	at := len(m.stack) - n
	if at <= m.floor() {
		return m.failf("got %d values; want %d and a list or dict", len(m.stack)-m.floor(), n)
	}
	err := do(m.stack[at-1], m.stack[at:], true)
	m.stack = m.stack[:at]
	return err
}

func (m *Machine) appendTo(to Value, items []Value, _ bool) error {
	if to.kind == Object {
		var err error
		if to, err = m.contents(to, List); err != nil {
			return err
		}
	}
	if to.kind != List {
		return m.failf("got %v; want a list to append to", to.kind)
	}
	b := &m.boxes[to.n]
	if b.shared {
		m.pinned = len(m.boxes)
	}
	return m.extend(b, items)
}

func (m *Machine) setIn(to Value, pairs []Value, whole bool) error {
	if to.kind == Object {
		var err error
		if to, err = m.contents(to, Dict); err != nil {
			return err
		}
	}
	if to.kind != Dict {
		return m.failf("got %v; want a dict to set in", to.kind)
	}
	if len(pairs)%2 != 0 {
		return m.failf("got %d values; want keys and values in turn", len(pairs))
	}
	b := &m.boxes[to.n]
	if m.Take != nil && b.n == 0 && !b.taken {
		if token, ok := m.Take(pairs, whole); ok {
			b.token, b.taken = token, true
			m.forget(to)
			return nil
		}
	}
	if b.shared {
		m.pinned = len(m.boxes)
	}
	return m.extend(b, pairs)
}

// recall notes that a value comes back from the memo. A dict that is still empty may be filled
// behind what was made since, which forget must not drop then.
func (m *Machine) recall(v Value) Value {
	if v.kind == Dict {
		if b := &m.boxes[v.n]; b.n == 0 && !b.taken {
			m.pinned = len(m.boxes)
		}
	}
	return v
}

// forget drops what was made for the contents of a dict that was taken, unless the memo
// may refer to it.
func (m *Machine) forget(v Value) {
	if next := int(v.n) + 1; m.pinned <= next {
		m.arena = m.arena[:m.boxes[v.n].base]
		m.boxes = m.boxes[:next]
	}
}

// extend adds values to a box. Where there is no room behind it, it moves and gets twice
// the room, so that boxes that grow in turn cost no more than one.
func (m *Machine) extend(b *box, items []Value) error {
	if err := m.raise(b, items); err != nil {
		return err
	}
	if b.n == 0 {
		b.start = int32(len(m.arena))
	}
	need := b.n + int32(len(items))
	if need <= b.space {
		copy(m.arena[b.start+b.n:], items)
		b.n = need
		return nil
	}
	if b.start+b.n != int32(len(m.arena)) {
		if err := m.room(2 * int(need)); err != nil {
			return err
		}
		start := int32(len(m.arena))
		m.arena = append(m.arena, m.arena[b.start:b.start+b.n]...)
		m.arena = append(m.arena, items...)
		m.arena = append(m.arena, make([]Value, need)...)
		b.start, b.space = start, 2*need
	} else {
		if err := m.room(len(items)); err != nil {
			return err
		}
		m.arena = append(m.arena, items...)
		b.space = need
	}
	b.n = need
	return nil
}

// raise keeps count of how deep a box is.
func (m *Machine) raise(b *box, items []Value) error {
	for _, v := range items {
		if v.kind < List {
			continue
		}
		if h := m.boxes[v.n].height; h >= b.height {
			if int(h) >= m.limits.Depth {
				return m.limitf("got values nested deeper than %d; want at most that", m.limits.Depth)
			}
			b.height = h + 1
		}
	}
	return nil
}

// Salvage closes what was open where the pickle ended, and returns its value as far as
// it was written; false where nothing was. A list or dict gets the values that were
// complete.
func (m *Machine) Salvage() (Value, bool) {
	for len(m.marks) > 0 {
		at := m.floor()
		m.marks = m.marks[:len(m.marks)-1]
		if at > m.floor() {
			to, items := m.stack[at-1], m.stack[at:]
			switch to.kind {
			case List:
				_ = m.appendTo(to, items, false) // what finds no room is lost
			case Dict:
				_ = m.setIn(to, items[:len(items)&^1], false)
			}
		}
		m.stack = m.stack[:at]
	}
	if len(m.stack) == 0 {
		return Value{}, false
	}
	return m.stack[0], true
}
