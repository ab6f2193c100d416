// SPDX-License-Identifier: Apache-2.0

package ranklog

import "hash/maphash"

// kinds keeps the kinds of lines that were read: programs print the same lines with other numbers.
type kinds struct {
	keys  [keptKinds]uint64
	kinds [keptKinds]lineKind
}

const keptKinds = 256

// of returns the kind of a line. That of two lines is the same where these differ in their digits alone.
func (k *kinds) of(line []byte) lineKind {
	var buf [maxFault]byte
	n := 0
	for i, c := range line[:min(len(line), maxFault)] {
		digit := c >= '0' && c <= '9'
		if digit && i > 0 && line[i-1] >= '0' && line[i-1] <= '9' {
			continue
		}
		if digit {
			c = '0'
		}
		buf[n] = c
		n++
	}
	key := maphash.Bytes(seed, buf[:n]) | 1 // 0: none is kept
	at := key / 2 % keptKinds
	if k.keys[at] != key {
		k.keys[at], k.kinds[at] = key, kindOfLine(line)
	}
	return k.kinds[at]
}
