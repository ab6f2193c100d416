// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A list of no ranks may have a long text, and each dump another one.
func TestCache_LongTextsWithoutRanks_BytesStayBounded(t *testing.T) {
	const limit, length, lists = 64 << 20, 1 << 20, 80
	list := func(i int) []byte { return []byte("[" + strings.Repeat(" ", length+i) + "]") }
	c := NewCache()
	for i := range lists {
		m, ok := readMembers(list(i), 1)
		require.True(t, ok)
		c.put(list(i), m)
	}
	kept := 0
	for i := range lists {
		if _, known := c.get(list(i)); known {
			kept += len(list(i))
		}
	}
	assert.LessOrEqual(t, kept, limit)
	assert.Greater(t, kept, limit*9/10)
	_, known := c.get(list(0))
	assert.True(t, known, "what came first stays")
}
