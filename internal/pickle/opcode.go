// SPDX-License-Identifier: Apache-2.0

package pickle

import "fmt"

// Opcode is an instruction of a pickle.
type Opcode byte

// Opcodes of the protocols 2 to 5, by the names of Python's pickletools.
const (
	opMark            Opcode = '('
	opStop            Opcode = '.'
	opPop             Opcode = '0'
	opPopMark         Opcode = '1'
	opDup             Opcode = '2'
	opFloat           Opcode = 'F'
	opInt             Opcode = 'I'
	opBinInt          Opcode = 'J'
	opBinInt1         Opcode = 'K'
	opLong            Opcode = 'L'
	opBinInt2         Opcode = 'M'
	opNone            Opcode = 'N'
	opPersID          Opcode = 'P'
	opBinPersID       Opcode = 'Q'
	opReduce          Opcode = 'R'
	opString          Opcode = 'S'
	opBinString       Opcode = 'T'
	opShortBinString  Opcode = 'U'
	opUnicode         Opcode = 'V'
	opBinUnicode      Opcode = 'X'
	opAppend          Opcode = 'a'
	opBuild           Opcode = 'b'
	opGlobal          Opcode = 'c'
	opDict            Opcode = 'd'
	opEmptyDict       Opcode = '}'
	opAppends         Opcode = 'e'
	opGet             Opcode = 'g'
	opBinGet          Opcode = 'h'
	opInst            Opcode = 'i'
	opLongBinGet      Opcode = 'j'
	opList            Opcode = 'l'
	opEmptyList       Opcode = ']'
	opObj             Opcode = 'o'
	opPut             Opcode = 'p'
	opBinPut          Opcode = 'q'
	opLongBinPut      Opcode = 'r'
	opSetItem         Opcode = 's'
	opTuple           Opcode = 't'
	opEmptyTuple      Opcode = ')'
	opSetItems        Opcode = 'u'
	opBinFloat        Opcode = 'G'
	opProto           Opcode = 0x80
	opNewObj          Opcode = 0x81
	opExt1            Opcode = 0x82
	opExt2            Opcode = 0x83
	opExt4            Opcode = 0x84
	opTuple1          Opcode = 0x85
	opTuple2          Opcode = 0x86
	opTuple3          Opcode = 0x87
	opNewTrue         Opcode = 0x88
	opNewFalse        Opcode = 0x89
	opLong1           Opcode = 0x8a
	opLong4           Opcode = 0x8b
	opBinBytes        Opcode = 'B'
	opShortBinBytes   Opcode = 'C'
	opShortBinUnicode Opcode = 0x8c
	opBinUnicode8     Opcode = 0x8d
	opBinBytes8       Opcode = 0x8e
	opEmptySet        Opcode = 0x8f
	opAddItems        Opcode = 0x90
	opFrozenSet       Opcode = 0x91
	opNewObjEx        Opcode = 0x92
	opStackGlobal     Opcode = 0x93
	opMemoize         Opcode = 0x94
	opFrame           Opcode = 0x95
	opByteArray8      Opcode = 0x96
	opNextBuffer      Opcode = 0x97
	opReadOnlyBuffer  Opcode = 0x98
)

// argument says how the argument behind an opcode is written.
type argument uint8

const (
	argUnknown  argument = iota // no opcode of the protocols 2 to 5
	argNone                     // there is none
	argUint1                    // 1 byte, unsigned
	argUint2                    // 2 bytes, little-endian, unsigned
	argInt4                     // 4 bytes, little-endian, signed
	argUint4                    // 4 bytes, little-endian, unsigned
	argUint8                    // 8 bytes, little-endian, unsigned
	argFloat8                   // 8 bytes, big-endian IEEE 754
	argLong1                    // 1 byte of length, a little-endian two's complement number
	argLong4                    // the same with 4 bytes of length
	argText1                    // 1 byte of length, so many bytes
	argText4                    // 4 bytes of length, so many bytes
	argText8                    // 8 bytes of length, so many bytes
	argLine                     // up to a newline
	argTwoLines                 // up to the second newline
)

type opcodeInfo struct {
	name string
	arg  argument
}

// opcodes tells of each byte what it is.
var opcodes = [256]opcodeInfo{
	opMark: {"MARK", argNone}, opStop: {"STOP", argNone}, opPop: {"POP", argNone}, opPopMark: {"POP_MARK", argNone},
	opDup: {"DUP", argNone}, opFloat: {"FLOAT", argLine}, opInt: {"INT", argLine}, opBinInt: {"BININT", argInt4},
	opBinInt1: {"BININT1", argUint1}, opLong: {"LONG", argLine}, opBinInt2: {"BININT2", argUint2}, opNone: {"NONE", argNone},
	opPersID: {"PERSID", argLine}, opBinPersID: {"BINPERSID", argNone}, opReduce: {"REDUCE", argNone},
	opString: {"STRING", argLine}, opBinString: {"BINSTRING", argText4}, opShortBinString: {"SHORT_BINSTRING", argText1},
	opUnicode: {"UNICODE", argLine}, opBinUnicode: {"BINUNICODE", argText4}, opAppend: {"APPEND", argNone},
	opBuild: {"BUILD", argNone}, opGlobal: {"GLOBAL", argTwoLines}, opDict: {"DICT", argNone}, opEmptyDict: {"EMPTY_DICT", argNone},
	opAppends: {"APPENDS", argNone}, opGet: {"GET", argLine}, opBinGet: {"BINGET", argUint1}, opInst: {"INST", argTwoLines},
	opLongBinGet: {"LONG_BINGET", argUint4}, opList: {"LIST", argNone}, opEmptyList: {"EMPTY_LIST", argNone}, opObj: {"OBJ", argNone},
	opPut: {"PUT", argLine}, opBinPut: {"BINPUT", argUint1}, opLongBinPut: {"LONG_BINPUT", argUint4}, opSetItem: {"SETITEM", argNone},
	opTuple: {"TUPLE", argNone}, opEmptyTuple: {"EMPTY_TUPLE", argNone}, opSetItems: {"SETITEMS", argNone},
	opBinFloat: {"BINFLOAT", argFloat8}, opProto: {"PROTO", argUint1}, opNewObj: {"NEWOBJ", argNone},
	opExt1: {"EXT1", argUint1}, opExt2: {"EXT2", argUint2}, opExt4: {"EXT4", argInt4},
	opTuple1: {"TUPLE1", argNone}, opTuple2: {"TUPLE2", argNone}, opTuple3: {"TUPLE3", argNone},
	opNewTrue: {"NEWTRUE", argNone}, opNewFalse: {"NEWFALSE", argNone}, opLong1: {"LONG1", argLong1}, opLong4: {"LONG4", argLong4},
	opBinBytes: {"BINBYTES", argText4}, opShortBinBytes: {"SHORT_BINBYTES", argText1},
	opShortBinUnicode: {"SHORT_BINUNICODE", argText1}, opBinUnicode8: {"BINUNICODE8", argText8}, opBinBytes8: {"BINBYTES8", argText8},
	opEmptySet: {"EMPTY_SET", argNone}, opAddItems: {"ADDITEMS", argNone}, opFrozenSet: {"FROZENSET", argNone},
	opNewObjEx: {"NEWOBJ_EX", argNone}, opStackGlobal: {"STACK_GLOBAL", argNone}, opMemoize: {"MEMOIZE", argNone},
	opFrame: {"FRAME", argUint8}, opByteArray8: {"BYTEARRAY8", argText8},
	opNextBuffer: {"NEXT_BUFFER", argNone}, opReadOnlyBuffer: {"READONLY_BUFFER", argNone},
}

// String returns the opcode's name in Python's pickletools.
func (o Opcode) String() string {
	if name := opcodes[o].name; name != "" {
		return name
	}
	return fmt.Sprintf("0x%02x", byte(o))
}

// Policy is a set of opcodes that a reader takes.
type Policy struct {
	name  string
	allow [256]bool
}

func newPolicy(name string, ops ...Opcode) *Policy {
	p := &Policy{name: name}
	for _, o := range ops {
		p.allow[o] = true
	}
	return p
}

func (p *Policy) allowsAll(ops []Opcode) bool {
	for _, o := range ops {
		if !p.allow[o] {
			return false
		}
	}
	return true
}

// DataOnly takes what makes numbers, texts, bytes, lists, tuples and dicts, and nothing
// that names code: no GLOBAL, REDUCE, BUILD, NEWOBJ, INST, OBJ or persistent id.
var DataOnly = newPolicy("data only", dataOps...)

// Inert takes what DataOnly takes, and what names code too, as descriptions: a class is its
// name, an object the name of its class with its arguments and attributes. Nothing is
// imported, called or constructed. What only the protocols 0 and 1 write is refused.
var Inert = newPolicy("data, or a description of objects", append([]Opcode{
	opGlobal, opStackGlobal, opReduce, opNewObj, opNewObjEx, opBuild, opBinPersID,
	opEmptySet, opAddItems, opFrozenSet, opPop, opPopMark, opDup, opLong4, opByteArray8,
}, dataOps...)...)

var dataOps = []Opcode{
	opProto, opFrame, opStop, opMark,
	opNone, opNewTrue, opNewFalse, opBinInt, opBinInt1, opBinInt2, opLong1, opBinFloat,
	opShortBinUnicode, opBinUnicode, opBinUnicode8, opShortBinBytes, opBinBytes, opBinBytes8,
	opEmptyList, opAppend, opAppends, opEmptyDict, opSetItem, opSetItems,
	opEmptyTuple, opTuple, opTuple1, opTuple2, opTuple3,
	opBinPut, opLongBinPut, opMemoize, opBinGet, opLongBinGet,
}
