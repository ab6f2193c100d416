// SPDX-License-Identifier: Apache-2.0

package torchsave

import (
	"archive/zip"
	"bytes"
	"hash/crc32"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// withTensors is a file of an empty dict with tensors of the bytes given; sums is whether it has checksums.
func withTensors(t *testing.T, name string, sums bool, tensors ...[]byte) *File {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(record string, data []byte) {
		h := &zip.FileHeader{Name: name + "/" + record, CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data))}
		if sums {
			h.CRC32 = crc32.ChecksumIEEE(data)
		}
		w, err := z.CreateRaw(h)
		require.NoError(t, err)
		_, err = w.Write(data)
		require.NoError(t, err)
	}
	add("data.pkl", []byte("\x80\x02}."))
	for i, data := range tensors {
		add("data/"+strconv.Itoa(i), data)
	}
	require.NoError(t, z.Close())
	f, err := openBytes(b.Bytes())
	require.NoError(t, err)
	return f
}

// Files with the same tensors have the same content, whatever they are called.
func TestContent(t *testing.T) {
	a, b := bytes.Repeat([]byte{1, 2, 3}, 20), bytes.Repeat([]byte{1, 2, 4}, 20)
	first, ok := withTensors(t, "rank_0", true, a, b).Content()
	require.True(t, ok)
	same, ok := withTensors(t, "rank_1", true, a, b).Content()
	require.True(t, ok)
	require.Equal(t, first, same)
	for name, f := range map[string]*File{
		"in another order": withTensors(t, "x", true, b, a), "one less": withTensors(t, "x", true, a), "longer": withTensors(t, "x", true, a, append(b, 0)),
	} {
		other, ok := f.Content()
		require.True(t, ok, name)
		require.NotEqual(t, first, other, name)
	}
	for name, f := range map[string]*File{"no tensors": withTensors(t, "x", true), "no checksums": withTensors(t, "x", false, a)} {
		_, ok := f.Content()
		require.False(t, ok, name)
	}
	require.Equal(t, "rank_0", withTensors(t, "rank_0", true, a).Name())
}

// A tensor that is filled with one value, of whatever width, does not vary.
func TestVaries(t *testing.T) {
	for name, tc := range map[string]struct {
		tensors [][]byte
		want    bool
	}{
		"none":               {nil, false},
		"no elements":        {[][]byte{{}}, false},
		"zeros":              {[][]byte{make([]byte, 4096)}, false},
		"ones of 4 bytes":    {[][]byte{bytes.Repeat([]byte{0, 0, 128, 63}, 99)}, false},
		"pi of 16 bytes":     {[][]byte{bytes.Repeat([]byte("0123456789abcdef"), 9)}, false},
		"two values":         {[][]byte{append(make([]byte, 64), 1)}, true},
		"one of many varies": {[][]byte{make([]byte, 4096), bytes.Repeat([]byte("0123456789"), 9)}, true},
		"a number":           {[][]byte{{1, 2, 3, 4}}, false},
	} {
		require.Equal(t, tc.want, withTensors(t, "x", true, tc.tensors...).Varies(), name)
	}
	n, size := withTensors(t, "x", true, make([]byte, 8), nil).Tensors()
	require.Equal(t, 2, n)
	require.EqualValues(t, 8, size)
}
