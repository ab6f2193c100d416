// SPDX-License-Identifier: Apache-2.0

package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// file is a file of a header and so many bytes of tensors.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func read(b []byte, l Limits) (*Header, error) { return Read(bytes.NewReader(b), int64(len(b)), l) }

const two = `{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},"a":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]}}   `

func TestRead(t *testing.T) {
	h, err := read(file(two, 32), Limits{})
	require.NoError(t, err)
	require.Equal(t, []Tensor{{"a", "BF16", []int64{4}, 0, 8}, {"b", "F32", []int64{2, 3}, 8, 32}}, h.Tensors)
	require.Equal(t, map[string]string{"format": "pt"}, h.Metadata)
	h, err = read(file(`{}`, 0), Limits{})
	require.NoError(t, err)
	require.Empty(t, h.Tensors)
	_, err = read(file(`{"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"e":{"dtype":"F8_E4M3","shape":[0,5],"data_offsets":[8,8]}}`, 8), Limits{})
	require.NoError(t, err, "a number, and an empty tensor")
	_, err = read(file(`{"x":{"dtype":"F32","DTYPE":"ZZZ","more":1,"shape":[1],"data_offsets":[0,4]}}`, 4), Limits{})
	require.NoError(t, err, "keys that the library does not know")
}

// TestNoPartPasses: a file that was cut anywhere, or that goes on, is refused.
func TestNoPartPasses(t *testing.T) {
	whole := file(two, 32)
	for n := range whole {
		_, err := read(whole[:n], Limits{})
		require.Error(t, err, "cut at %d", n)
	}
	_, err := read(append(whole, 0), Limits{})
	require.ErrorContains(t, err, "got 33 bytes of tensors; want 32")
}

func TestWhatIsNoSafetensors(t *testing.T) {
	tensor := func(dtype, shape, offsets string) []byte {
		return file(fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets), 8)
	}
	for name, tc := range map[string]struct {
		b    []byte
		want string
	}{
		"no JSON":                 {file("PK\x03\x04", 0), "invalid character"},
		"a list":                  {file("[]", 0), "want an object"},
		"null":                    {file("null", 0), "want an object"},
		"an object cut off":       {file(`{"a":{}`, 0), "got data_offsets []"},
		"another type":            {tensor("ZZZ", "[2]", "[0,8]"), `read tensor "a": got type "ZZZ"; want one that safetensors knows`},
		"no type":                 {file(`{"a":{"shape":[2],"data_offsets":[0,8]}}`, 8), `got type ""`},
		"no shape":                {file(`{"a":{"dtype":"I64","data_offsets":[0,8]}}`, 8), "got no shape"},
		"metadata twice":          {file(`{"__metadata__":{"step":"1"},"__metadata__":{"step":"2"}}`, 0), `got "__metadata__" twice`},
		"a tensor twice":          {file(`{"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}`, 8), `got "a" twice`},
		"a tensor twice, escaped": {file(`{"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"\u0061":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}`, 8), `got "a" twice`},
		"a type twice":            {file(`{"a":{"dtype":"F32","dtype":"I64","shape":[],"data_offsets":[0,8]}}`, 8), `got "dtype" twice`},
		"bytes behind the JSON":   {file(`{}{}`, 0), "got more behind the object"},
		"a length beyond all":     {binary.LittleEndian.AppendUint64(nil, 1<<63), "got a length of 9223372036854775808; want at most 0"},
		"one offset":              {tensor("F32", "[2]", "[0]"), "want begin and end"},
		"offsets backwards":       {tensor("F32", "[2]", "[8,0]"), "want begin and end"},
		"offsets below 0":         {tensor("F32", "[2]", "[-8,0]"), "cannot unmarshal"},
		"huge offsets":            {tensor("F32", "[2]", "[0,18446744073709551615]"), "want begin and end"},
		"a gap":                   {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "want it at 0"},
		"an overlap":              {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "want it at 8"},
		"a shape of other size":   {tensor("F32", "[3]", "[0,8]"), "got 8 bytes; want 12"},
		"a shape below 0":         {tensor("F32", "[-2]", "[0,8]"), "got shape [-2]"},
		"a shape that overflows":  {tensor("F32", "[4294967296,4294967296,4294967296]", "[0,8]"), "got shape"},
		"metadata of numbers":     {file(`{"__metadata__":{"a":1}}`, 0), "read __metadata__"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(tc.b, Limits{})
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// TestTypes: those of the library, of any number of elements that end with a byte.
func TestTypes(t *testing.T) {
	require.Len(t, bits, 22)
	for dtype, n := range bits {
		_, err := read(file(fmt.Sprintf(`{"a":{"dtype":%q,"shape":[4],"data_offsets":[0,%d]}}`, dtype, n/2), int(n/2)), Limits{})
		require.NoError(t, err, dtype)
	}
}

func TestLimits(t *testing.T) {
	_, err := read(file(two, 32), Limits{Header: 100})
	require.ErrorContains(t, err, "want at most 100")
	require.ErrorIs(t, err, ErrLimit)
	_, err = read(file(two, 32)[:60], Limits{Header: 100})
	require.ErrorContains(t, err, "want at most 52", "it ends before its header does")
	require.NotErrorIs(t, err, ErrLimit)
	deep := strings.Repeat("[", 20_000)
	_, err = read(file(`{"a":`+deep+`}`, 0), Limits{})
	require.Error(t, err)
}

func FuzzRead(f *testing.F) {
	f.Add(file(two, 32))
	f.Add(file(`{}`, 0))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := read(b, Limits{Header: 1 << 16})
		if err != nil {
			return
		}
		end := int64(0)
		for _, x := range h.Tensors {
			require.Equal(t, end, x.Begin)
			end = x.End
		}
		require.LessOrEqual(t, end, int64(len(b)))
	})
}

func TestMetadataIsBounded(t *testing.T) {
	_, err := read(file(`{"__metadata__":{"a":"`+strings.Repeat("x", maxMetadata)+`"}}`, 0), Limits{})
	require.ErrorIs(t, err, ErrLimit)
	require.ErrorContains(t, err, "read __metadata__: got")
}
