// SPDX-License-Identifier: Apache-2.0

package ckptsim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// Values of a pickle beyond nil, bool, int64, float64 and string.
type (
	tuple []any
	list  []any
	dict  []any // key, value, key, value
	// global is a class or function, by module and name.
	global struct{ module, name string }
	// call is what a function returns for arguments.
	call struct {
		of   global
		args tuple
	}
	// object is made of a class without arguments, and given its state.
	object struct {
		of    global
		state any
	}
	// persistent is what the file keeps elsewhere: a storage.
	persistent struct{ id any }
)

// pickled writes a value as pickle.dumps does: protocol 2, which torch.save takes, or 4.
func pickled(v any, protocol byte) []byte {
	p := &pickler{protocol: protocol}
	p.b.Write([]byte{0x80, protocol})
	p.put(v)
	p.b.WriteByte('.')
	return p.b.Bytes()
}

type pickler struct {
	b        bytes.Buffer
	protocol byte
}

func (p *pickler) put(v any) {
	switch v := v.(type) {
	case nil:
		p.b.WriteByte('N')
	case bool:
		p.b.WriteByte(map[bool]byte{true: 0x88, false: 0x89}[v])
	case int:
		p.number(int64(v))
	case int64:
		p.number(v)
	case float64:
		p.b.WriteByte('G')
		p.b.Write(binary.BigEndian.AppendUint64(nil, math.Float64bits(v)))
	case string:
		p.text(v)
	case tuple:
		p.b.WriteByte('(')
		p.all(v, 't')
	case list:
		p.b.WriteString("](")
		p.all(v, 'e')
	case dict:
		p.b.WriteString("}(")
		p.all(v, 'u')
	default:
		p.object(v)
	}
}

func (p *pickler) object(v any) {
	switch v := v.(type) {
	case global:
		p.global(v)
	case call:
		p.global(v.of)
		p.put(v.args)
		p.b.WriteByte('R')
	case object:
		p.global(v.of)
		p.b.WriteString(")\x81")
		p.put(v.state)
		p.b.WriteByte('b')
	case persistent:
		p.put(v.id)
		p.b.WriteByte('Q')
	default:
		panic(fmt.Sprintf("pickle: got a %T; want a value that the simulator writes", v))
	}
}

func (p *pickler) all(vs []any, end byte) {
	for _, v := range vs {
		p.put(v)
	}
	p.b.WriteByte(end)
}

func (p *pickler) number(n int64) {
	switch {
	case n >= 0 && n < 1<<8:
		p.b.Write([]byte{'K', byte(n)})
	case n >= math.MinInt32 && n <= math.MaxInt32:
		p.b.WriteByte('J')
		p.b.Write(binary.LittleEndian.AppendUint32(nil, uint32(n))) //nolint:gosec // two's complement is the format
	default:
		p.b.Write([]byte{0x8a, 8})
		p.b.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // two's complement is the format
	}
}

func (p *pickler) text(s string) {
	if p.protocol >= 4 && len(s) < 1<<8 {
		p.b.Write([]byte{0x8c, byte(len(s))})
	} else {
		p.b.WriteByte('X')
		p.b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) //nolint:gosec // texts here are short
	}
	p.b.WriteString(s)
}

func (p *pickler) global(g global) {
	if p.protocol >= 4 {
		p.text(g.module)
		p.text(g.name)
		p.b.WriteByte(0x93)
		return
	}
	fmt.Fprintf(&p.b, "c%s\n%s\n", g.module, g.name)
}
