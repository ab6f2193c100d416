// SPDX-License-Identifier: Apache-2.0

package bounded

import "container/list"

// Room counts the bytes that owners hold together, such as the jobs that an engine follows, and
// names the owner that makes room for others: where bytes are short the first one that holds more
// than all together that entered after it, so that neither one owner nor many new ones that flood
// an engine push out the others; where another count is short the first one that holds more of that
// count; where places are short the one that was heard longest ago, of those first that were heard a
// few times only, so that a flood of new owners replaces itself. The zero value is ready; it is not
// safe for concurrent use.
type Room[T any] struct {
	bytes int
	// entered are all owners in order, as *Share[T].
	entered list.List
	// fresh are owners that were heard fewer than settledAfter times, settled are the others;
	// both are *Share[T], the one that was heard longest ago first.
	fresh, settled list.List
}

// settledAfter is how many times an owner is heard until it counts as settled. One node has as many
// ranks, and they report their job in one message.
const settledAfter = 8

// freshShare is the part of all owners that fresh ones may be before they leave first.
const freshShare = 4

// Share is what one owner holds of a Room.
type Share[T any] struct {
	Owner T

	room  *Room[T]
	at    *list.Element // in fresh or settled
	place *list.Element // in entered
	bytes int
	heard int
}

// Enter adds an owner that holds nothing yet.
func (r *Room[T]) Enter(owner T) *Share[T] {
	s := &Share[T]{Owner: owner, room: r}
	s.at, s.place = r.fresh.PushBack(s), r.entered.PushBack(s)
	return s
}

// Bytes returns what all owners hold.
func (r *Room[T]) Bytes() int { return r.bytes }

// Len returns how many owners there are.
func (r *Room[T]) Len() int { return r.entered.Len() }

// Largest returns the owner that leaves first where bytes are short, the zero value where there is
// none.
func (r *Room[T]) Largest() (owner T) { return r.LargestOf(anyOwner) }

// LargestOf is Largest among the owners that may leave.
func (r *Room[T]) LargestOf(may func(T) bool) T {
	return r.largest(may, func(s *Share[T]) int { return s.bytes })
}

// LargestBy returns the owner that leaves first where a count other than bytes is short: the first one
// whose count exceeds the counts of all owners together that entered after it. Where no owner holds any
// it is the newest, the zero value where there is none.
func (r *Room[T]) LargestBy(count func(T) int) T {
	return r.largest(anyOwner, func(s *Share[T]) int { return count(s.Owner) })
}

const (
	// hoard is the part of all places above which the owner that holds most makes room before all others.
	hoard = 4
	// crowd is the part above which an owner makes room that holds more than all newer ones together.
	crowd = 16
)

// Fullest returns the owner that gives up one of its places where those are short and owners may hold
// several: the one that holds most if that is more than a quarter of all places, else that of LargestBy if
// it holds more than a sixteenth, else, of the owners that hold any, the one that leaves first where there
// are too many.
func (r *Room[T]) Fullest(places int, count func(T) int) (owner T) {
	if r.Len() == 0 {
		return owner
	}
	if owner = r.most(count); hoard*count(owner) > places {
		return owner
	}
	if owner = r.LargestBy(count); crowd*count(owner) > places {
		return owner
	}
	return r.OldestOf(func(owner T) bool { return count(owner) > 0 })
}

// most returns the owner with the highest count, of several the newest.
func (r *Room[T]) most(count func(T) int) (owner T) {
	most := -1
	for at := r.entered.Back(); at != nil; at = at.Prev() {
		s := at.Value.(*Share[T])
		if n := count(s.Owner); n > most {
			owner, most = s.Owner, n
		}
	}
	return owner
}

func (r *Room[T]) largest(may func(T) bool, count func(*Share[T]) int) (owner T) {
	after, found := 0, false
	for at := r.entered.Back(); at != nil; at = at.Prev() {
		s := at.Value.(*Share[T])
		n := count(s)
		if (n > after || !found) && may(s.Owner) {
			owner, found = s.Owner, true
		}
		after += n
	}
	return owner
}

// Oldest returns the owner that leaves first where there are too many, the zero value where there
// is none.
func (r *Room[T]) Oldest() (owner T) { return r.OldestOf(anyOwner) }

// OldestOf is Oldest among the owners that may leave.
func (r *Room[T]) OldestOf(may func(T) bool) (owner T) {
	first, then := &r.settled, &r.fresh
	if freshShare*r.fresh.Len() > r.Len() {
		first, then = then, first
	}
	for _, l := range []*list.List{first, then} {
		for at := l.Front(); at != nil; at = at.Next() {
			if s := at.Value.(*Share[T]); may(s.Owner) {
				return s.Owner
			}
		}
	}
	return owner
}

func anyOwner[T any](T) bool { return true }

// Hear notes that the owner was heard.
func (s *Share[T]) Hear() {
	s.heard++
	switch {
	case s.heard > settledAfter:
		s.room.settled.MoveToBack(s.at)
	case s.heard == settledAfter:
		s.room.fresh.Remove(s.at)
		s.at = s.room.settled.PushBack(s)
	default:
		s.room.fresh.MoveToBack(s.at)
	}
}

// Add counts bytes that the owner holds from now on, or less than 0 for those that it gives back.
func (s *Share[T]) Add(bytes int) {
	s.bytes += bytes
	s.room.bytes += bytes
}

// Bytes returns what the owner holds.
func (s *Share[T]) Bytes() int { return s.bytes }

// Leave removes the owner with all that it holds.
func (s *Share[T]) Leave() {
	s.Add(-s.bytes)
	s.room.entered.Remove(s.place)
	if s.heard >= settledAfter {
		s.room.settled.Remove(s.at)
	} else {
		s.room.fresh.Remove(s.at)
	}
}
