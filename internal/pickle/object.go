// SPDX-License-Identifier: Apache-2.0

package pickle

import "bytes"

// Slots of an Object's box. Its size never changes; what is appended to an object, or set
// in it, lies in a box of its own.
const (
	slotCallable = iota // what would be called: a Global, as a rule
	slotArgs            // a Tuple
	slotState           // of BUILD: the attributes, as a rule a Dict
	slotContents        // a List of what was appended, or a Dict of what was set
	slots
)

// Class returns the module and name of a Global, or of what an Object would be made by.
// Both are parts of the input; false where it is something else.
func (m *Machine) Class(v Value) (module, name []byte, ok bool) {
	if v.kind == Object {
		v = m.Items(v)[slotCallable]
	}
	if v.kind != Global {
		return nil, nil, false
	}
	items := m.Items(v)
	return m.Text(items[0]), m.Text(items[1]), true
}

// Is reports whether v is the class, or an object made by the class, of that module and name.
func (m *Machine) Is(v Value, module, name string) bool {
	gotModule, gotName, ok := m.Class(v)
	return ok && string(gotName) == name && string(gotModule) == module
}

// Args returns what an Object would be called with; of other values it is nil.
func (m *Machine) Args(v Value) []Value {
	if v.kind != Object {
		return nil
	}
	return m.Items(m.Items(v)[slotArgs])
}

// State returns what would be the attributes of an Object; None where it was given none.
func (m *Machine) State(v Value) Value {
	if v.kind != Object {
		return Value{}
	}
	return m.Items(v)[slotState]
}

// Contents returns the List of what was appended to an Object, or the Dict of what was set
// in it; None where nothing was.
func (m *Machine) Contents(v Value) Value {
	if v.kind != Object {
		return Value{}
	}
	return m.Items(v)[slotContents]
}

// Get returns what a Dict has under a key; of an Object, what was set in it under the key,
// else its attribute of that name.
func (m *Machine) Get(v Value, key string) (Value, bool) {
	if v.kind == Object {
		if got, ok := m.Get(m.Contents(v), key); ok {
			return got, true
		}
		state := m.State(v)
		if state.kind == Tuple { // attributes, and those of __slots__
			for _, part := range m.Items(state) {
				if part.kind != Dict {
					continue
				}
				if got, ok := m.Get(part, key); ok {
					return got, true
				}
			}
			return Value{}, false
		}
		v = state
	}
	if v.kind != Dict {
		return Value{}, false
	}
	items := m.Items(v)
	for i := len(items) - 2; i >= 0; i -= 2 { // what is set last holds
		if items[i].kind == String && string(m.Text(items[i])) == key {
			return items[i+1], true
		}
	}
	return Value{}, false
}

// stepObject executes the opcodes that name code. Nothing is called: what would be made is
// described.
func (m *Machine) stepObject() error {
	s := &m.scan
	switch s.Op {
	case opGlobal:
		return m.pushGlobal()
	case opStackGlobal:
		return m.stackGlobal()
	case opReduce, opNewObj:
		return m.makeObject(2)
	case opNewObjEx:
		return m.makeObject(3)
	case opBuild:
		return m.build()
	case opBinPersID:
		return m.persist()
	case opEmptySet:
		return m.pushBox(Set, 0)
	case opAddItems:
		return m.fromMark(m.addTo)
	case opFrozenSet:
		return m.tupleFromMarkAs(Set)
	}
	return m.stepStack()
}

func (m *Machine) persist() error {
	if err := m.pushBox(Persistent, 1); err != nil {
		return err
	}
	if m.Persist != nil {
		m.Persist(m.Items(m.stack[len(m.stack)-1])[0])
	}
	return nil
}

// stepStack executes the opcodes that C's and Python's picklers never write but others may.
func (m *Machine) stepStack() error {
	s := &m.scan
	switch s.Op {
	case opPop:
		if n := len(m.marks); n > 0 && int(m.marks[n-1]) == len(m.stack) {
			m.marks = m.marks[:n-1]
			return nil
		}
		return m.drop(1)
	case opPopMark:
		if len(m.marks) == 0 {
			return m.failf("got no mark; want one")
		}
		m.stack = m.stack[:m.floor()]
		m.marks = m.marks[:len(m.marks)-1]
		return nil
	case opDup:
		if len(m.stack) <= m.floor() {
			return m.failf("got no value; want one to repeat")
		}
		v := m.stack[len(m.stack)-1]
		m.share(v)
		return m.push(v)
	case opLong4:
		return m.pushText(Big)
	case opByteArray8:
		return m.pushText(Bytes)
	}
	return m.failf("got it out of place; want it at the beginning only")
}

func (m *Machine) drop(n int) error {
	if len(m.stack)-n < m.floor() {
		return m.failf("got %d values; want %d", len(m.stack)-m.floor(), n)
	}
	m.stack = m.stack[:len(m.stack)-n]
	return nil
}

// share notes that a value is referred to from more than one place.
func (m *Machine) share(v Value) {
	if v.kind >= List {
		m.boxes[v.n].shared = true
		m.pinned = len(m.boxes)
	}
}

// pushGlobal pushes the class that GLOBAL's two lines name.
func (m *Machine) pushGlobal() error {
	i := bytes.IndexByte(m.scan.Text, '\n')
	if len(m.scan.Text) > m.limits.Text {
		return m.limitf("got a name of %d bytes; want at most %d", len(m.scan.Text), m.limits.Text)
	}
	if i < 0 {
		return m.failf("got a name of %d bytes; want a module and a name", len(m.scan.Text))
	}
	if err := m.room(2); err != nil {
		return err
	}
	at := m.scan.At + 1
	for _, t := range []span{{uint32(at), uint32(i)}, {uint32(at + i + 1), uint32(len(m.scan.Text) - i - 1)}} {
		m.texts = append(m.texts, t)
		if err := m.push(Value{n: int64(len(m.texts) - 1), kind: String}); err != nil {
			return err
		}
	}
	return m.pushBox(Global, 2)
}

func (m *Machine) stackGlobal() error {
	at := len(m.stack) - 2
	if at < m.floor() || m.stack[at].kind != String || m.stack[at+1].kind != String {
		return m.failf("got no two strings; want a module and a name")
	}
	return m.pushBox(Global, 2)
}

// makeObject describes what a class, or a function, would make of arguments: of two values,
// or of three where there are arguments by name, which are kept behind the others.
func (m *Machine) makeObject(n int) error {
	at := len(m.stack) - n
	if at < m.floor() {
		return m.failf("got %d values; want %d", len(m.stack)-m.floor(), n)
	}
	callable, args := m.stack[at], m.stack[at+1]
	if callable.kind != Global && callable.kind != Object {
		return m.failf("got %v; want a class or a function", callable.kind)
	}
	if args.kind != Tuple {
		return m.failf("got %v; want a tuple of arguments", args.kind)
	}
	if n == 3 {
		if err := m.pushBox(Tuple, 2); err != nil {
			return err
		}
		args = m.stack[len(m.stack)-1]
	}
	m.stack = m.stack[:at]
	for _, v := range [slots]Value{slotCallable: callable, slotArgs: args} {
		if err := m.push(v); err != nil {
			return err
		}
	}
	return m.pushBox(Object, slots)
}

// build keeps what would be the attributes of the object below.
func (m *Machine) build() error {
	at := len(m.stack) - 2
	if at < m.floor() || m.stack[at].kind != Object {
		return m.failf("got no object and its state; want both")
	}
	obj, state := m.stack[at], m.stack[at+1]
	m.stack = m.stack[:at+1]
	return m.setSlot(obj, slotState, state)
}

func (m *Machine) setSlot(obj Value, slot int, v Value) error {
	b := &m.boxes[obj.n]
	if err := m.raise(b, []Value{v}); err != nil {
		return err
	}
	// What is younger than the object is referred to by it.
	m.pinned = len(m.boxes)
	m.arena[int(b.start)+slot] = v
	return nil
}

// contents returns where what is appended to an object, or set in it, is kept.
func (m *Machine) contents(obj Value, k Kind) (Value, error) {
	if have := m.Contents(obj); have.kind != None {
		return have, nil
	}
	if err := m.room(1); err != nil {
		return Value{}, err
	}
	v := m.newBox(k)
	return v, m.setSlot(obj, slotContents, v)
}

func (m *Machine) addTo(to Value, items []Value, _ bool) error {
	if to.kind == Object {
		var err error
		if to, err = m.contents(to, List); err != nil {
			return err
		}
	}
	if to.kind != Set && to.kind != List {
		return m.failf("got %v; want a set to add to", to.kind)
	}
	b := &m.boxes[to.n]
	if b.shared {
		m.pinned = len(m.boxes)
	}
	return m.extend(b, items)
}
