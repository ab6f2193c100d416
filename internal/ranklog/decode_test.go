// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wide returns text as UTF-16 with a byte order mark.
func wide(order binary.AppendByteOrder, text string) string {
	var out []byte
	for _, u := range utf16.Encode([]rune("\uFEFF" + text)) {
		out = order.AppendUint16(out, u)
	}
	return string(out)
}

func TestSet_LongLineOfUTF16_IsCutAndTheRestRead(t *testing.T) {
	timeOut := versions["2.14"](inDefault(3))
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, length := range []int{maxLine - 4, maxLine - 3, maxLine - 1, maxLine, maxLine + 3, 3 * maxLine} {
			for _, char := range []string{"x", "é", "€", "\U0001F600"} {
				t.Run(fmt.Sprint(order, length, char), func(t *testing.T) {
					text := wide(order, "step 1\n"+strings.Repeat(char, length/len(char))+"\n"+timeOut)
					s := NewSet()
					require.NoError(t, s.Read(File{Path: "a", Rank: -1}, strings.NewReader(text)))
					require.Contains(t, s.ranks, int64(3))
					assert.Len(t, s.ranks[3].waits, 1)
					assert.True(t, Sniff(strings.NewReader(text)))
				})
			}
		}
	}
}

func TestDecode_IntoPiecesOfAnySize_ReturnsAll(t *testing.T) {
	const text = "a é € \U0001F600\n"
	for size := 1; size <= 8; size++ {
		var got strings.Builder
		r := Decode(strings.NewReader(wide(binary.BigEndian, text)))
		_, err := io.CopyBuffer(&got, struct{ io.Reader }{r}, make([]byte, size))
		require.NoError(t, err, size)
		assert.Equal(t, text, got.String(), size)
	}
	require.NoError(t, iotest.TestReader(Decode(strings.NewReader(wide(binary.LittleEndian, text))), []byte(text)))
}
