// SPDX-License-Identifier: Apache-2.0

package kineto

// maxTime bounds times and durations to 2^61 ns (73 years from 1970), so that
// base, start and duration add up without overflow.
const maxTime = int64(1) << 61

// parseMicros reads a decimal number of microseconds as nanoseconds, exactly;
// digits beyond the nanosecond are cut. False where it is no number or too big.
func parseMicros(b []byte) (ns int64, ok bool) { return parseScaled(b, 3) }

// parseInt reads an integer; a fraction is cut.
func parseInt(b []byte) (int64, bool) { return parseScaled(b, 0) }

// parseScaled reads b * 10^scale, cut to an integer.
func parseScaled(b []byte, scale int) (int64, bool) {
	if len(b) >= 2 && b[0] == '"' {
		b = b[1 : len(b)-1]
	}
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	mantissa, frac, exp := b, []byte(nil), 0
	for i, c := range b {
		if c == 'e' || c == 'E' {
			var ok bool
			if exp, ok = parseExponent(b[i+1:]); !ok {
				return 0, false
			}
			mantissa = b[:i]
			break
		}
	}
	for i, c := range mantissa {
		if c == '.' {
			mantissa, frac = mantissa[:i], mantissa[i+1:]
			break
		}
	}
	if len(mantissa) == 0 {
		return 0, false
	}
	v, ok := digits(mantissa, frac, len(mantissa)+exp+scale)
	if neg {
		v = -v
	}
	return v, ok
}

// digits reads the first n digits of whole and frac, one after the other, and
// pads with zeros. The others are checked only.
func digits(whole, frac []byte, n int) (v int64, ok bool) {
	total := len(whole) + len(frac)
	for i := range max(n, total) {
		c := byte('0')
		switch {
		case i < len(whole):
			c = whole[i]
		case i < total:
			c = frac[i-len(whole)]
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		if i >= n {
			continue
		}
		if v = v*10 + int64(c-'0'); v > maxTime {
			return 0, false
		}
		if i >= total && v == 0 {
			return 0, true
		}
	}
	return v, true
}

// maxExponent bounds the powers of ten that a time can sensibly carry.
const maxExponent = 99

func parseExponent(b []byte) (int, bool) {
	neg := len(b) > 0 && b[0] == '-'
	if len(b) > 0 && (neg || b[0] == '+') {
		b = b[1:]
	}
	n := 0
	for _, c := range b {
		if n = n*10 + int(c) - '0'; c < '0' || c > '9' || n > maxExponent {
			return 0, false
		}
	}
	if neg {
		n = -n
	}
	return n, len(b) > 0
}
