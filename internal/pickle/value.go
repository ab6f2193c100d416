// SPDX-License-Identifier: Apache-2.0

package pickle

import "math"

// Kind says what a value is.
type Kind uint8

// The kinds of values.
const (
	None Kind = iota
	Bool
	Int
	Float
	Big // a whole number that does not fit 64 bits
	String
	Bytes
	List
	Tuple
	Dict
	Set        // of Inert only, as those below
	Global     // the name of a class or function
	Object     // what a class or function would make
	Persistent // an id of something that lies outside the pickle
)

var kindNames = [...]string{
	"None", "a bool", "an int", "a float", "a large int", "a string", "bytes", "a list", "a tuple", "a dict",
	"a set", "a class", "an object", "a persistent id",
}

// String names the kind for people: "a list".
func (k Kind) String() string { return kindNames[k] }

// Value is one value of a pickle: a number itself, or the place of something larger in
// the Machine that read it.
type Value struct {
	n    int64
	kind Kind
}

// Kind returns what the value is.
func (v Value) Kind() Kind { return v.kind }

// Int returns an int, or a bool as 0 or 1.
func (v Value) Int() int64 { return v.n }

// Float returns a float.
func (v Value) Float() float64 { return math.Float64frombits(uint64(v.n)) }

// TextID numbers the strings, bytes and large ints of a pickle from 0 in the order in
// which they are written: two values with one id are one text.
func (v Value) TextID() int { return int(v.n) }

// span is a text: a part of the input.
type span struct{ off, n uint32 }

// box is a list, tuple or dict: a part of the arena.
type box struct {
	base            int32 // length of the arena when it was made
	start, n, space int32 // its values: where, how many, room for how many
	token           int32 // of who took it
	height          uint8 // boxes within each other, at most
	taken, shared   bool  // shared: the memo has it
}

// Text returns the bytes of a string, of bytes or of a large int: a part of the input.
// Of other values it is nil.
func (m *Machine) Text(v Value) []byte {
	if v.kind != String && v.kind != Bytes && v.kind != Big {
		return nil
	}
	t := m.texts[v.n]
	return m.scan.data[t.off : t.off+t.n]
}

// Texts returns how many strings, bytes and large ints were read: the TextID of the next.
func (m *Machine) Texts() int { return len(m.texts) }

// Items returns the values of a list, tuple or set, keys and values of a dict in turn, or
// the one id of something persistent.
// They are the machine's, until its next step. A value may contain itself: who walks
// deeper must bound the depth.
func (m *Machine) Items(v Value) []Value {
	if v.kind < List {
		return nil
	}
	b := &m.boxes[v.n]
	return m.arena[b.start : b.start+b.n]
}

// Taken returns what Take made of a dict; false where it took it not.
func (m *Machine) Taken(v Value) (token int32, ok bool) {
	if v.kind != Dict {
		return 0, false
	}
	b := &m.boxes[v.n]
	return b.token, b.taken
}
