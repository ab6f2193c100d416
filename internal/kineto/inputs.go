// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"encoding/json"
	"math"

	"github.com/lockstep-otel/lockstep/internal/torchname"
)

// inputs reads "Input Dims" and "Input type": how many elements all inputs have,
// how many bytes, -1 where a type is unknown, and the type where all agree.
func inputs(dims, types []byte) (nelems, size int64, dtype string) {
	nelems, size = -1, -1
	if len(dims) == 0 || dims[0] != '[' {
		return nelems, size, ""
	}
	known := true
	ti := 1
	for i := 1; i < len(dims)-1; {
		n, next := tensor(dims, i)
		t, after := nextType(types, ti)
		i, ti = next, after
		if n < 0 {
			continue
		}
		nelems = plus(nelems, n)
		d, ok := torchname.DTypeOf(t)
		if known = known && ok; ok {
			size = plus(size, times(n, d.Size))
			dtype = d.Name
		}
	}
	if !known {
		return nelems, -1, ""
	}
	return nelems, size, dtype
}

// tensor returns the elements of the input that begins at or behind b[i], the
// sum where it is a list of tensors, -1 where it is neither; and the index of
// the next input.
func tensor(b []byte, i int) (n int64, next int) {
	for i < len(b) && b[i] != '[' {
		i++
	}
	n = -1
	depth := 0
	product, digits := int64(1), false
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '[':
			depth++
			product, digits = 1, false
		case c >= '0' && c <= '9':
			var v int64
			for ; i < len(b) && b[i] >= '0' && b[i] <= '9'; i++ {
				v = plus(times(v, 10), int64(b[i]-'0'))
			}
			i--
			product, digits = times(product, v), true
		case c == ']':
			if digits {
				n = plus(n, product)
				digits = false
			}
			if depth--; depth <= 0 {
				return n, i + 1
			}
		}
	}
	return n, len(b)
}

// nextType returns the string that begins at or behind b[i], and the index
// behind it.
func nextType(b []byte, i int) (string, int) {
	for i < len(b) && b[i] != '"' {
		i++
	}
	if i >= len(b) {
		return "", len(b)
	}
	end, err := skipString(b, i)
	if err != nil {
		return "", len(b)
	}
	return string(b[i+1 : end-1]), end
}

// plus and times saturate; a negative operand of plus counts as none.
func plus(a, b int64) int64 {
	a, b = max(a, 0), max(b, 0)
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// unescape decodes the escapes of a string that was cut out of its quotes.
func unescape(b []byte) string {
	for _, c := range b {
		if c == '\\' {
			var s string
			quoted := append(append([]byte{'"'}, b...), '"')
			if json.Unmarshal(quoted, &s) == nil {
				return s
			}
			break
		}
	}
	return string(b)
}

// listText returns the text of a list that is written as a string or as a list.
func listText(v []byte) []byte {
	if t := text(v); t != nil {
		return t
	}
	return v
}
