// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"cmp"
	"fmt"
	"slices"
)

// Range is the numbers from First to Last, both included.
type Range struct{ First, Last int64 }

// Ranges is a set of numbers: ranges in order, none of which touches the next.
type Ranges []Range

// MaxNumber is the largest number of a span. An agent that numbers a million spans a second reaches it after nine
// years.
const MaxNumber = 1 << 48

// Of returns the set of the numbers of some ranges, which may overlap and need no order. It changes the slice.
func Of(ranges []Range) Ranges {
	slices.SortFunc(ranges, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	var out Ranges
	for _, r := range ranges {
		out = out.push(r)
	}
	return out
}

// push appends a range that begins no earlier than the last one.
func (s Ranges) push(r Range) Ranges {
	if n := len(s); n > 0 && r.First <= s[n-1].Last+1 {
		s[n-1].Last = max(s[n-1].Last, r.Last)
		return s
	}
	return append(s, r)
}

// Count returns how many numbers there are.
func (s Ranges) Count() (n int64) {
	for _, r := range s {
		n += r.Last - r.First + 1
	}
	return n
}

// Has reports whether a number is in the set.
func (s Ranges) Has(n int64) bool {
	_, found := slices.BinarySearchFunc(s, n, func(r Range, n int64) int {
		switch {
		case r.Last < n:
			return -1
		case r.First > n:
			return 1
		}
		return 0
	})
	return found
}

// Union returns the numbers of both sets.
func (s Ranges) Union(o Ranges) Ranges {
	out := make(Ranges, 0, len(s)+len(o))
	for len(s) > 0 || len(o) > 0 {
		if len(o) == 0 || len(s) > 0 && s[0].First <= o[0].First {
			out, s = out.push(s[0]), s[1:]
		} else {
			out, o = out.push(o[0]), o[1:]
		}
	}
	return out
}

// Minus returns the numbers that are not in the other set.
func (s Ranges) Minus(o Ranges) (out Ranges) {
	for _, r := range s {
		for len(o) > 0 && o[0].Last < r.First {
			o = o[1:]
		}
		for i := 0; i < len(o) && o[i].First <= r.Last && r.First <= r.Last; i++ {
			if r.First < o[i].First {
				out = append(out, Range{r.First, o[i].First - 1})
			}
			r.First = o[i].Last + 1
		}
		if r.First <= r.Last {
			out = append(out, r)
		}
	}
	return out
}

// Intersect returns the numbers of both sets.
func (s Ranges) Intersect(o Ranges) Ranges { return s.Minus(s.Minus(o)) }

// gaps returns the numbers below the greatest one that are not in the set.
func (s Ranges) gaps() Ranges {
	if len(s) == 0 {
		return nil
	}
	return Ranges{{0, s[len(s)-1].Last}}.Minus(s)
}

// check returns an error unless the ranges are in order, and of numbers from a least one to a greatest one.
func (s Ranges) check(least, greatest int64) error {
	for i, r := range s {
		if r.Last < r.First || r.First < least || r.Last > greatest || i > 0 && r.First <= s[i-1].Last {
			return fmt.Errorf("got the range %d to %d; want ranges in order, of numbers from %d to %d", r.First, r.Last, least, greatest)
		}
	}
	return nil
}
