package blame

// slotKey is a place in the program of ranks of one role.
type slotKey struct {
	role  uint64
	place Place
	seq   uint32
}

// slots number the places of programs. Ranks of one role come in the same order, so
// that the next is most often the one after the last.
type slots struct {
	ids  map[slotKey]int32
	keys []slotKey
	last int32
}

func (s *slots) of(k slotKey) int32 {
	if next := s.last + 1; int(next) < len(s.keys) && s.keys[next] == k {
		s.last = next
		return next
	}
	id, ok := s.ids[k]
	if !ok {
		if s.ids == nil {
			s.ids = map[slotKey]int32{}
		}
		id = int32(len(s.keys))
		s.ids[k] = id
		s.keys = append(s.keys, k)
	}
	s.last = id
	return id
}
