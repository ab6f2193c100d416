// SPDX-License-Identifier: Apache-2.0

package fuzzcomponents

// source turns the bytes of an input into choices. At its end every choice is 0.
type source struct{ b []byte }

func (s *source) more() bool { return len(s.b) > 0 }

func (s *source) byte() byte {
	if len(s.b) == 0 {
		return 0
	}
	b := s.b[0]
	s.b = s.b[1:]
	return b
}

// below returns a number from 0 to n-1, and 0 where n is 0. n is at most 65,536.
func (s *source) below(n int) int {
	v := int(s.byte())
	if n > 256 {
		v = v<<8 | int(s.byte())
	}
	if n == 0 {
		return 0
	}
	return v % n
}

func (s *source) uint64() (v uint64) {
	for range 8 {
		v = v<<8 | uint64(s.byte())
	}
	return v
}

func pick[T any](s *source, from []T) T { return from[s.below(len(from))] }
