// SPDX-License-Identifier: Apache-2.0

package frwrite

import (
	"encoding/binary"
	"math"
)

// The opcodes that torch::jit::Pickler uses for a dump.
const (
	opProto      = 0x80
	opEmptyDict  = '}'
	opEmptyList  = ']'
	opMark       = '('
	opBinUnicode = 'X'
	opBinPut     = 'q'
	opLongBinPut = 'r'
	opBinGet     = 'h'
	opLongBinGet = 'j'
	opAppends    = 'e'
	opSetItems   = 'u'
	opTuple2     = 0x86
	opBinInt1    = 'K'
	opBinInt2    = 'M'
	opBinInt     = 'J'
	opLong1      = 0x8a
	opBinFloat   = 'G'
	opNone       = 'N'
	opTrue       = 0x88
	opFalse      = 0x89
	opStop       = '.'
)

// pickler keeps the memo: of strings by value, of frames by identity, which for frames that
// PyTorch symbolized is the same as by value.
type pickler struct {
	buf     []byte
	strings map[string]uint32
	frames  map[Frame]uint32
	memo    uint32
}

func newPickler(size int) *pickler {
	p := &pickler{buf: make([]byte, 0, size), strings: make(map[string]uint32, 128), frames: map[Frame]uint32{}}
	p.op(opProto, 2)
	return p
}

func (p *pickler) op(b ...byte) { p.buf = append(p.buf, b...) }

func (p *pickler) dict() { p.op(opEmptyDict, opMark) }
func (p *pickler) list() { p.op(opEmptyList, opMark) }

func (p *pickler) put() uint32 {
	id := p.memo
	p.memo++
	if id < 256 {
		p.op(opBinPut, byte(id))
	} else {
		p.op(opLongBinPut)
		p.buf = binary.LittleEndian.AppendUint32(p.buf, id)
	}
	return id
}

func (p *pickler) get(id uint32) {
	if id < 256 {
		p.op(opBinGet, byte(id))
		return
	}
	p.op(opLongBinGet)
	p.buf = binary.LittleEndian.AppendUint32(p.buf, id)
}

func (p *pickler) str(s string) {
	if id, ok := p.strings[s]; ok {
		p.get(id)
		return
	}
	p.op(opBinUnicode)
	p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(len(s)))
	p.buf = append(p.buf, s...)
	p.strings[s] = p.put()
}

func (p *pickler) integer(n int64) {
	switch {
	case n >= 0 && n <= math.MaxUint8:
		p.op(opBinInt1, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		p.op(opBinInt2)
		p.buf = binary.LittleEndian.AppendUint16(p.buf, uint16(n))
	case n >= math.MinInt32 && n <= math.MaxInt32:
		p.op(opBinInt)
		p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(int32(n)))
	default:
		p.op(opLong1, 8)
		p.buf = binary.LittleEndian.AppendUint64(p.buf, uint64(n))
	}
}

// stamp writes a time, None where there is none.
func (p *pickler) stamp(ns int64) {
	if ns == 0 {
		p.op(opNone)
		return
	}
	p.integer(ns)
}

func (p *pickler) float(f float64) {
	p.op(opBinFloat)
	p.buf = binary.BigEndian.AppendUint64(p.buf, math.Float64bits(f))
}

func (p *pickler) boolean(b bool) {
	if b {
		p.op(opTrue)
	} else {
		p.op(opFalse)
	}
}

func (p *pickler) sizes(sizes [][]int64) {
	p.list()
	for _, s := range sizes {
		p.list()
		for _, n := range s {
			p.integer(n)
		}
		p.op(opAppends)
	}
	p.op(opAppends)
}

func (p *pickler) strs(list []string) {
	p.list()
	for _, s := range list {
		p.str(s)
	}
	p.op(opAppends)
}

func (p *pickler) stack(frames []Frame) {
	p.list()
	for _, f := range frames {
		if id, ok := p.frames[f]; ok {
			p.get(id)
			continue
		}
		p.dict()
		p.str("name")
		p.str(f.Name)
		p.str("filename")
		p.str(f.File)
		p.str("line")
		p.integer(f.Line)
		p.op(opSetItems)
		p.frames[f] = p.put()
	}
	p.op(opAppends)
}
