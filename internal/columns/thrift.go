// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Types of Thrift's compact protocol (thrift-compact-protocol.md of Apache Thrift).
const (
	thriftStop   = 0
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// maxNesting bounds structures within one another. Those of Parquet have less than ten.
const maxNesting = 32

var (
	errThriftEnd   = errors.New("got its end within a structure")
	errThriftDepth = fmt.Errorf("got more than %d structures within one another; want at most that", maxNesting)
	errThriftType  = errors.New("got a type that the format does not have")
)

// thrift reads structures of the compact protocol. It takes memory for what is there, not for what a count
// declares. After an error it reads zeros.
type thrift struct {
	b     []byte
	at    int
	depth int
	err   error
}

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.at = len(t.b)
}

func (t *thrift) byte() byte {
	if t.at >= len(t.b) {
		t.fail(errThriftEnd)
		return 0
	}
	t.at++
	return t.b[t.at-1]
}

func (t *thrift) uvarint() uint64 {
	n, size := binary.Uvarint(t.b[t.at:])
	if size <= 0 {
		t.fail(errThriftEnd)
		return 0
	}
	t.at += size
	return n
}

// int reads an integer of any width.
func (t *thrift) int() int64 {
	u := t.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// binary reads bytes, which stay those of the input.
func (t *thrift) binary() []byte {
	n := t.uvarint()
	if n > uint64(len(t.b)-t.at) {
		t.fail(errThriftEnd)
		return nil
	}
	t.at += int(n)
	return t.b[t.at-int(n) : t.at]
}

// structure calls field for each field. It reads the value, or returns false, and the value is passed over.
func (t *thrift) structure(field func(id int16, kind byte) bool) {
	if t.depth++; t.depth > maxNesting {
		t.fail(errThriftDepth)
	}
	defer func() { t.depth-- }()
	var id int16
	for t.err == nil {
		head := t.byte()
		kind := head & 0xf
		if kind == thriftStop {
			return
		}
		if d := head >> 4; d != 0 {
			id += int16(d)
		} else {
			id = int16(t.int())
		}
		if !field(id, kind) {
			t.skip(kind)
		}
	}
}

// list calls element for each element, as many as there are at most bytes for.
func (t *thrift) list(element func(kind byte)) {
	head := t.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = t.uvarint()
	}
	if n > uint64(len(t.b)-t.at) {
		t.fail(errThriftEnd)
		return
	}
	for ; n > 0 && t.err == nil; n-- {
		element(head & 0xf)
	}
}

// skip passes over a value.
func (t *thrift) skip(kind byte) {
	switch kind {
	case thriftTrue, thriftFalse: // the type is the value
	case thriftByte:
		t.byte()
	case thriftI16, thriftI32, thriftI64:
		t.uvarint()
	case thriftDouble:
		for range 8 {
			t.byte()
		}
	case thriftBinary:
		t.binary()
	case thriftList, thriftSet:
		t.skipList()
	case thriftStruct:
		t.structure(func(int16, byte) bool { return false })
	default: // a map is in no structure of Parquet
		t.fail(errThriftType)
	}
}

func (t *thrift) skipList() {
	if t.depth++; t.depth > maxNesting {
		t.fail(errThriftDepth)
	}
	defer func() { t.depth-- }()
	t.list(func(kind byte) {
		if kind == thriftTrue || kind == thriftFalse { // within a list a boolean is a byte
			kind = thriftByte
		}
		t.skip(kind)
	})
}
