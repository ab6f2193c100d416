// SPDX-License-Identifier: Apache-2.0

package frwrite

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// The opcodes that only Python's pickle module uses.
const (
	opFrame         = 0x95
	opMemoize       = 0x94
	opShortUnicode  = 0x8c
	opSetItem       = 's'
	opTuple1        = 0x85
	opTuple         = 't'
	opBinBytes      = 'B'
	opShortBinBytes = 'C'
	opByteArray     = 0x96
	opReduce        = 'R'
)

// Pair is a key of a dictionary, a string or an int, and its value.
type Pair struct{ Key, Value any }

// ByteArray is a Python bytearray.
type ByteArray []byte

// Python pickles a value as Python's pickle module does under a protocol of 2 to 5: nil, bool, int,
// int64, float64, json.Number (an int), string, []byte, ByteArray, []any, []Pair (a dictionary) and
// map[string]any. It panics on others.
func Python(protocol int, v any) []byte {
	p := &pythonPickler{pickler: *newPickler(0), protocol: protocol}
	p.buf[1] = byte(protocol)
	head := len(p.buf)
	p.value(v)
	p.op(opStop)
	if protocol < 4 {
		return p.buf
	}
	out := append([]byte{opProto, byte(protocol), opFrame}, binary.LittleEndian.AppendUint64(nil, uint64(len(p.buf)-head))...)
	return append(out, p.buf[head:]...)
}

type pythonPickler struct {
	pickler
	protocol int
}

// remember gives a value the next place of the memo, as Python does with each.
func (p *pythonPickler) remember() {
	if p.protocol >= 4 {
		p.op(opMemoize)
		p.memo++
		return
	}
	p.put()
}

func (p *pythonPickler) value(v any) {
	switch v := v.(type) {
	case nil:
		p.op(opNone)
	case bool:
		p.boolean(v)
	case int:
		p.integer(int64(v))
	case int64:
		p.integer(v)
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			f, _ := v.Float64()
			p.float(f)
			return
		}
		p.integer(n)
	case float64:
		p.float(v)
	case string:
		p.text(v)
	case []byte:
		p.bytes(v)
	case ByteArray:
		p.array(v)
	case []any:
		p.op(opEmptyList)
		p.remember()
		p.op(opMark)
		for _, e := range v {
			p.value(e)
		}
		p.op(opAppends)
	case []Pair:
		p.pairs(v)
	case map[string]any:
		var pairs []Pair
		for k, e := range v {
			pairs = append(pairs, Pair{k, e})
		}
		p.pairs(pairs)
	default:
		panic(fmt.Sprintf("pickle a value: got %T", v))
	}
}

func (p *pythonPickler) pairs(pairs []Pair) {
	p.op(opEmptyDict)
	p.remember()
	if len(pairs) == 1 {
		p.value(pairs[0].Key)
		p.value(pairs[0].Value)
		p.op(opSetItem)
		return
	}
	const batch = 1000
	for ; len(pairs) > 0; pairs = pairs[min(batch, len(pairs)):] {
		p.op(opMark)
		for _, m := range pairs[:min(batch, len(pairs))] {
			p.value(m.Key)
			p.value(m.Value)
		}
		p.op(opSetItems)
	}
}

func (p *pythonPickler) text(s string) {
	if id, ok := p.strings[s]; ok {
		p.get(id)
		return
	}
	if p.protocol >= 4 && len(s) < 256 {
		p.op(opShortUnicode, byte(len(s)))
	} else {
		p.op(opBinUnicode)
		p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(len(s)))
	}
	p.buf = append(p.buf, s...)
	p.strings[s] = p.memo
	p.remember()
}

// bytes writes what protocol 2 has no opcode for as a call, as Python does.
func (p *pythonPickler) bytes(b []byte) {
	switch {
	case p.protocol < 3:
		latin := make([]rune, len(b))
		for i, c := range b {
			latin[i] = rune(c)
		}
		p.buf = append(p.buf, "c_codecs\nencode\n"...)
		p.remember()
		p.op(opMark)
		p.text(string(latin))
		p.text("latin1")
		p.op(opTuple)
		p.remember()
		p.op(opReduce)
	case len(b) < 256:
		p.op(opShortBinBytes, byte(len(b)))
		p.buf = append(p.buf, b...)
	default:
		p.op(opBinBytes)
		p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(len(b)))
		p.buf = append(p.buf, b...)
	}
	p.remember()
}

// array writes a bytearray: from protocol 5 on it has an opcode.
func (p *pythonPickler) array(b []byte) {
	if p.protocol >= 5 {
		p.op(opByteArray)
		p.buf = binary.LittleEndian.AppendUint64(p.buf, uint64(len(b)))
		p.buf = append(p.buf, b...)
	} else {
		p.buf = append(p.buf, "cbuiltins\nbytearray\n"...)
		p.remember()
		p.bytes(b)
		p.op(opTuple1)
		p.remember()
		p.op(opReduce)
	}
	p.remember()
}
