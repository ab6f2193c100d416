// SPDX-License-Identifier: Apache-2.0

package epoch

// set is one of small numbers, of a bit each.
type set []uint64

func (s set) has(i int32) bool {
	return int(i>>6) < len(s) && s[i>>6]&(1<<(i&63)) != 0
}

func (s *set) add(i int32) {
	for int(i>>6) >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

// expect has a domain expected of the save.
func (s *save) expect(at int32) {
	for int(at) >= len(s.cells) {
		s.cells = append(s.cells, cell{})
	}
	s.told.add(at)
}
