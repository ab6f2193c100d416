// SPDX-License-Identifier: Apache-2.0

package blame

// slotKey is a place in the program of ranks of one role.
type slotKey struct {
	role  uint64
	place Place
	seq   uint32
}

// slots number the places of programs. Ranks of one role come in much the same order, so
// that the next is most often the one that came after the last one before.
type slots struct {
	ids  map[slotKey]int32
	keys []slotKey
	next []int32 // of each slot, the one that came after it last
	last int32
}

func (s *slots) of(k slotKey) int32 {
	if int(s.last) < len(s.keys) {
		if next := s.next[s.last]; s.keys[next] == k {
			s.last = next
			return next
		}
	}
	id, ok := s.ids[k]
	if !ok {
		if s.ids == nil {
			s.ids = map[slotKey]int32{}
		}
		id = int32(len(s.keys))
		s.ids[k] = id
		s.keys, s.next = append(s.keys, k), append(s.next, id)
	}
	s.next[s.last] = id
	s.last = id
	return id
}
