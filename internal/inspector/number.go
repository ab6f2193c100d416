// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"math"
	"strconv"
)

// number is a JSON number, which may be written as an integer or with a fraction.
// What is none, as the "nan" of Inspector's writer, is there and not a number.
type number struct {
	f     float64
	there bool
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *number) UnmarshalJSON(b []byte) error {
	*n = number{there: true, f: math.NaN()}
	// Not by the standard library alone: nearly all numbers are short integers.
	if v, ok := digits(b); ok {
		n.f = v
		return nil
	}
	if v, err := strconv.ParseFloat(string(b), 64); err == nil {
		n.f = v
	}
	return nil
}

// digits parses up to 15 digits, which a float holds exactly.
func digits(b []byte) (float64, bool) {
	if len(b) == 0 || len(b) > 15 {
		return 0, false
	}
	v := int64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return float64(v), true
}

// exact is up to where a float holds every integer.
const exact = 1 << 53

// whole returns the number if it is an integer between 0 and limit.
func (n number) whole(limit float64) (int64, bool) {
	if !n.there || n.f != math.Trunc(n.f) || !(n.f >= 0 && n.f <= min(limit, exact)) {
		return 0, false
	}
	return int64(n.f), true
}

// within returns the number if it is between 0 and limit.
func (n number) within(limit float64) (float64, bool) {
	return n.f, n.there && n.f >= 0 && n.f <= limit
}

func (n number) String() string {
	if !n.there {
		return "none"
	}
	return strconv.FormatFloat(n.f, 'g', -1, 64)
}
