// SPDX-License-Identifier: Apache-2.0

package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrTruncated says that a pickle ends before its STOP.
var ErrTruncated = errors.New("pickle is cut off")

// ErrLimit says that a pickle has more of something than Limits allow.
var ErrLimit = errors.New("pickle is larger than what is read of one")

// ErrRefused says that a pickle has an opcode or a protocol that is not read.
var ErrRefused = errors.New("pickle has what is not read")

// Error says where in a pickle, and why, its reading ended.
type Error struct {
	Offset int    // bytes
	Op     Opcode // at that offset; 0 where there is none
	What   string
	Err    error // ErrTruncated, ErrLimit, ErrRefused, or nil
}

func (e *Error) Error() string {
	if e.Op == 0 {
		return fmt.Sprintf("offset %d: %s", e.Offset, e.What)
	}
	return fmt.Sprintf("offset %d: %v: %s", e.Offset, e.Op, e.What)
}

func (e *Error) Unwrap() error { return e.Err }

// Scanner reads the opcodes of a pickle one after the other, whatever they mean. Its
// fields are those of the opcode that Next read last.
type Scanner struct {
	data []byte
	pos  int

	At   int    // offset of the opcode
	Op   Opcode //
	Int  int64  // a whole number, a place in the memo, a frame's length
	Text []byte // a string, bytes, lines, or a number of more than 8 bytes; a part of the input
}

// NewScanner returns a scanner over a pickle, which it does not change.
func NewScanner(data []byte) *Scanner { return &Scanner{data: data} }

// Float returns the argument of BINFLOAT.
func (s *Scanner) Float() float64 { return math.Float64frombits(uint64(s.Int)) }

// Next reads one opcode and its argument.
func (s *Scanner) Next() error {
	s.At = s.pos
	if s.pos >= len(s.data) {
		s.Op = 0
		return s.cut("got no more bytes; want an opcode")
	}
	s.Op = Opcode(s.data[s.pos])
	rest := s.data[s.pos+1:]
	switch opcodes[s.Op].arg {
	case argNone:
		s.pos++
		return nil
	case argUint1:
		if len(rest) >= 1 {
			s.Int = int64(rest[0])
			s.pos += 2
			return nil
		}
	case argUint2:
		if len(rest) >= 2 {
			s.Int = int64(binary.LittleEndian.Uint16(rest))
			s.pos += 3
			return nil
		}
	case argInt4:
		if len(rest) >= 4 {
			s.Int = int64(int32(binary.LittleEndian.Uint32(rest)))
			s.pos += 5
			return nil
		}
	case argLong1:
		if len(rest) >= 1 && len(rest) > int(rest[0]) {
			s.long(rest[1 : 1+int(rest[0])])
			s.pos += 2 + int(rest[0])
			return nil
		}
	default:
		return s.nextRare(rest)
	}
	return s.short(rest)
}

// nextRare reads the arguments that are seldom, or of no fixed length.
func (s *Scanner) nextRare(rest []byte) error {
	switch arg := opcodes[s.Op].arg; arg {
	case argUnknown:
		return s.fail("got an unknown opcode; want one of the protocols 2 to 5")
	case argUint4:
		if len(rest) >= 4 {
			s.Int = int64(binary.LittleEndian.Uint32(rest))
			s.pos += 5
			return nil
		}
	case argUint8, argFloat8:
		if len(rest) >= 8 {
			s.Int = int64(binary.LittleEndian.Uint64(rest))
			if arg == argFloat8 {
				s.Int = int64(binary.BigEndian.Uint64(rest))
			}
			s.pos += 9
			return nil
		}
	case argText1:
		return s.text(rest, 1)
	case argText4, argLong4:
		return s.text(rest, 4)
	case argText8:
		return s.text(rest, 8)
	case argLine:
		return s.lines(rest, 1)
	case argTwoLines:
		return s.lines(rest, 2)
	}
	return s.short(rest)
}

// text reads an argument behind its length of width bytes.
func (s *Scanner) text(rest []byte, width int) error {
	if len(rest) < width {
		return s.short(rest)
	}
	var n uint64
	for i := width - 1; i >= 0; i-- {
		n = n<<8 | uint64(rest[i])
	}
	rest = rest[width:]
	if n > uint64(len(rest)) {
		return s.cut(fmt.Sprintf("got %d bytes; want the %d that are declared", len(rest), n))
	}
	s.Text = rest[:n]
	s.pos += 1 + width + int(n)
	return nil
}

// lines reads an argument of so many lines, without the last newline.
func (s *Scanner) lines(rest []byte, count int) error {
	end := 0
	for range count {
		i := bytes.IndexByte(rest[end:], '\n')
		if i < 0 {
			return s.cut("got no newline; want one behind the argument")
		}
		end += i + 1
	}
	s.Text = rest[:end-1]
	s.pos += 1 + end
	return nil
}

// long reads a number in two's complement; of more than 8 bytes it stays as written.
func (s *Scanner) long(b []byte) {
	s.Text, s.Int = nil, 0
	if len(b) > 8 {
		s.Text = b
		return
	}
	if len(b) == 8 {
		s.Int = int64(binary.LittleEndian.Uint64(b))
		return
	}
	for i := len(b) - 1; i >= 0; i-- {
		s.Int = s.Int<<8 | int64(b[i])
	}
	if len(b) > 0 && b[len(b)-1] >= 0x80 {
		s.Int -= 1 << (8 * len(b))
	}
}

func (s *Scanner) fail(what string) error { return &Error{Offset: s.At, Op: s.Op, What: what} }

func (s *Scanner) cut(what string) error {
	return &Error{Offset: s.At, Op: s.Op, What: what, Err: ErrTruncated}
}

func (s *Scanner) short(rest []byte) error {
	return s.cut(fmt.Sprintf("got %d bytes of argument; want all of it", len(rest)))
}
