// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// naiveString finds the end of a string a byte at a time.
func naiveString(b []byte) (int, bool) {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1, true
		}
	}
	return 0, false
}

func TestSkipString(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const letters = `a\\"aaaaaaaa\`
	for range 20000 {
		b := []byte{'"'}
		for range rnd.IntN(60) {
			b = append(b, letters[rnd.IntN(len(letters))])
		}
		want, ok := naiveString(b)
		got, err := skipString(b, 0)
		require.Equal(t, ok, err == nil, "%s", b)
		require.Equal(t, want, got, "%s", b)
		require.True(t, ok || errors.Is(err, errShort))
	}
}

// A value's end does not depend on where windows end.
func TestSkipper(t *testing.T) {
	value := []byte(`{"a":[1,"x\"}\\",{"b":"]"}],"c":"\\\\"}`)
	require.True(t, json.Valid(value))
	text := append(value, `,"next"`...)
	for cut := range text {
		var k skipper
		n, done := k.feed(text[:cut])
		if !done {
			require.Equal(t, cut, n)
			var m int
			m, done = k.feed(text[cut:])
			n += m
		}
		assert.True(t, done)
		assert.Equal(t, len(value), n, "cut at %d", cut)
	}
}

func TestSkipValue(t *testing.T) {
	for _, v := range []string{`0`, `-1.5e+3`, `true`, `null`, `"a\"b"`, `[]`, `{"a":[{}]}`, `NaN`} {
		got, err := skipValue([]byte(v+","), 0)
		require.NoError(t, err, v)
		assert.Equal(t, len(v), got, v)
		_, err = skipValue([]byte(v[:len(v)-1]), 0)
		if len(v) > 1 {
			assert.ErrorIs(t, err, errShort, v)
		}
	}
}
