// SPDX-License-Identifier: Apache-2.0

package ckpt

import (
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// numbered reads the number of a name such as "step-100" or "iter_0001000".
func numbered(name, prefix string) (int64, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	return number(rest)
}

// number reads decimal digits and nothing else.
func number(s string) (int64, bool) {
	if s == "" || digits(s) != len(s) {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// overlong reports whether a name has a number that 64 bits do not hold.
func overlong(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	if !ok || rest == "" || digits(rest) != len(rest) {
		return false
	}
	_, ok = number(rest)
	return !ok
}

func some(n int64, ok bool) model.Optional[int64] { return model.Optional[int64]{V: n, OK: ok} }

// quantity writes a number in decimal digits.
func quantity(n int64) string { return strconv.FormatInt(n, 10) }
