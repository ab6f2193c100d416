package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
)

// unmarshal reads JSON as Python's json writes it: with the numbers NaN, Infinity and -Infinity,
// which are no JSON and are null here.
func unmarshal(b []byte, v any) error {
	err := json.Unmarshal(b, v)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	finite := withoutNonFinite(b)
	if finite == nil {
		return err
	}
	return json.Unmarshal(finite, v)
}

// withoutNonFinite has null for each number that is not finite; nil where there is none.
func withoutNonFinite(b []byte) []byte {
	var out []byte
	quoted, from := false, 0
	for i := 0; i < len(b); i++ {
		switch {
		case quoted && b[i] == '\\':
			i++
		case b[i] == '"':
			quoted = !quoted
		case !quoted:
			n := nonFinite(b[i:])
			if n == 0 {
				continue
			}
			out = append(append(out, b[from:i]...), "null"...)
			i += n - 1
			from = i + 1
		}
	}
	if out == nil {
		return nil
	}
	return append(out, b[from:]...)
}

// nonFinite is how long the number at the beginning is that is not finite; 0 where there is none.
func nonFinite(b []byte) int {
	for _, s := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(s)) {
			return len(s)
		}
	}
	return 0
}
