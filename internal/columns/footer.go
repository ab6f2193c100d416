// SPDX-License-Identifier: Apache-2.0

package columns

import (
	"fmt"
)

// Numbers of the Parquet format (parquet.thrift of apache/parquet-format).
const (
	typeBoolean   = 0
	typeInt64     = 2
	typeDouble    = 5
	typeByteArray = 6

	codecNone = 0
	codecZstd = 6
)

// typeNames are the physical types by their number.
var typeNames = []string{"boolean", "int32", "int64", "int96", "float", "double", "byte array", "fixed-length byte array"}

func typeName(t int64) string {
	if t >= 0 && t < int64(len(typeNames)) {
		return typeNames[t]
	}
	return fmt.Sprintf("number %d", t)
}

// physical returns the type in which a column is stored.
func (c *column) physical() int64 {
	switch c.kind {
	case delta, repeated:
		return typeInt64
	case double:
		return typeDouble
	case flag:
		return typeBoolean
	default:
		return typeByteArray
	}
}

// Limits of what is read of a footer. Files of this format have some 100 columns.
const (
	maxColumns   = 1 << 10
	maxGroups    = 1 << 12
	maxPairs     = 1 << 10
	maxTextBytes = 1 << 16 // of a key, a value or a name
)

// footer is what is read of the metadata at the end of a file.
type footer struct {
	creator string
	schema  []element
	groups  []group
	pairs   map[string]string
}

// element is a column of the schema, or a group of columns.
type element struct {
	name       string
	physical   int64 // -1: a group
	repetition int64 // 0 required, 1 optional, 2 repeated
	children   int64
}

// group is a row group.
type group struct {
	rows   int64
	chunks []chunk
}

// chunk is a column of a row group.
type chunk struct {
	path     string // the last name of it
	depth    int    // names in the path
	physical int64
	codec    int64
	start    int64 // of its first page
	size     int64 // of all its pages
}

// parseFooter reads the metadata of a file.
func parseFooter(b []byte) (*footer, error) {
	f := &footer{pairs: map[string]string{}}
	t := &thrift{b: b}
	t.structure(func(id int16, kind byte) bool {
		switch {
		case id == 2 && kind == thriftList:
			t.list(func(byte) { f.schema = append(f.schema, t.element()) })
		case id == 4 && kind == thriftList:
			t.list(func(byte) { f.groups = append(f.groups, t.group(len(f.schema))) })
		case id == 5 && kind == thriftList:
			t.list(func(byte) { t.pair(f.pairs) })
		case id == 6 && kind == thriftBinary:
			f.creator = t.text()
		default:
			return false
		}
		if len(f.schema) > maxColumns || len(f.groups) > maxGroups || len(f.pairs) > maxPairs {
			t.fail(fmt.Errorf("got more than %d columns, %d row groups or %d keys", maxColumns, maxGroups, maxPairs))
		}
		return true
	})
	if t.err != nil {
		return nil, fmt.Errorf("read metadata: %w", t.err)
	}
	return f, nil
}

// text reads a text of limited length.
func (t *thrift) text() string {
	b := t.binary()
	if len(b) > maxTextBytes {
		t.fail(fmt.Errorf("got a text of %d bytes; want at most %d", len(b), maxTextBytes))
		return ""
	}
	return string(b)
}

// number reads an integer, or false where the field is none.
func (t *thrift) number(kind byte, to *int64) bool {
	if kind < thriftI16 || kind > thriftI64 {
		return false
	}
	*to = t.int()
	return true
}

func (t *thrift) element() element {
	e := element{physical: -1}
	t.structure(func(id int16, kind byte) bool {
		switch {
		case id == 1:
			return t.number(kind, &e.physical)
		case id == 3:
			return t.number(kind, &e.repetition)
		case id == 4 && kind == thriftBinary:
			e.name = t.text()
			return true
		case id == 5:
			return t.number(kind, &e.children)
		}
		return false
	})
	return e
}

// group reads a row group, which has at most so many columns.
func (t *thrift) group(columns int) group {
	var g group
	t.structure(func(id int16, kind byte) bool {
		switch {
		case id == 1 && kind == thriftList:
			t.list(func(byte) {
				if len(g.chunks) >= columns {
					t.fail(fmt.Errorf("got a row group of more columns than the %d of the schema", columns))
				}
				g.chunks = append(g.chunks, t.chunk())
			})
			return true
		case id == 3:
			return t.number(kind, &g.rows)
		}
		return false
	})
	return g
}

func (t *thrift) chunk() chunk {
	var c chunk
	t.structure(func(id int16, kind byte) bool {
		if id == 3 && kind == thriftStruct {
			t.chunkMeta(&c)
			return true
		}
		return false
	})
	return c
}

func (t *thrift) chunkMeta(c *chunk) {
	var data, dictionary int64
	t.structure(func(id int16, kind byte) bool {
		switch {
		case id == 1:
			return t.number(kind, &c.physical)
		case id == 3 && kind == thriftList:
			t.list(func(byte) { c.path, c.depth = t.text(), c.depth+1 })
			return true
		case id == 4:
			return t.number(kind, &c.codec)
		case id == 7:
			return t.number(kind, &c.size)
		case id == 9:
			return t.number(kind, &data)
		case id == 11:
			return t.number(kind, &dictionary)
		}
		return false
	})
	c.start = data
	if dictionary > 0 && dictionary < data {
		c.start = dictionary
	}
}

func (t *thrift) pair(to map[string]string) {
	var key, text string
	t.structure(func(id int16, kind byte) bool {
		switch {
		case id == 1 && kind == thriftBinary:
			key = t.text()
		case id == 2 && kind == thriftBinary:
			text = t.text()
		default:
			return false
		}
		return true
	})
	if len(to) <= maxPairs {
		to[key] = text
	}
}
