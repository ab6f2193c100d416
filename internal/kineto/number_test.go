// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseMicros(t *testing.T) {
	tests := []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true},
		{"1", 1000, true},
		{"4458677009853.422", 4458677009853422, true},
		{"1694128201429795", 1694128201429795000, true}, // has no float64 of its own in ns
		{"0.001", 1, true},
		{"0.0019", 1, true},
		{"1.5", 1500, true},
		{"-2.25", -2250, true},
		{"1.7e3", 1700000, true},
		{"1694128201429795e0", 1694128201429795000, true},
		{"25e-1", 2500, true},
		{"1e-9", 0, true},
		{`"12.5"`, 12500, true},
		{"0e99", 0, true},
		{"1e99", 0, false},
		{"1e100", 0, false},
		{"2305843009213693.952", 0, true}, // 2^61 ns: the last
		{"2305843009213694", 0, false},
		{"99999999999999999999999999", 0, false},
		{"", 0, false},
		{"-", 0, false},
		{".5", 0, false},
		{"1e", 0, false},
		{"1x", 0, false},
		{"null", 0, false},
		{"nan", 0, false},
	}
	for _, tt := range tests {
		got, ok := parseMicros([]byte(tt.in))
		assert.Equal(t, tt.ok, ok, tt.in)
		if tt.in == "2305843009213693.952" {
			tt.want = 1 << 61
		}
		if ok {
			assert.Equal(t, tt.want, got, tt.in)
		}
	}
}

func TestInputs(t *testing.T) {
	tests := []struct {
		dims, types   string
		nelems, bytes int64
		dtype         string
	}{
		{`[[6144]]`, `["float"]`, 6144, 24576, "float32"},
		{`[[65536, 384]]`, `["c10::BFloat16"]`, 65536 * 384, 65536 * 384 * 2, "bfloat16"},
		{`[[2, 3], [4]]`, `["long int", "long int"]`, 10, 80, "int64"},
		{`[[[41216]], [], [], []]`, `["TensorList", "", "", ""]`, 41216, -1, ""},
		{`[[[2, 2], [3]], []]`, `["TensorList", ""]`, 7, -1, ""},
		{`[[], []]`, `["", "Scalar"]`, -1, -1, ""},
		{`[[0]]`, `["float"]`, 0, 0, "float32"},
		{`[]`, `[]`, -1, -1, ""},
		{`"x"`, ``, -1, -1, ""},
		{`[[9223372036854775807, 9]]`, `["float"]`, 1<<63 - 1, 1<<63 - 1, "float32"},
	}
	for _, tt := range tests {
		nelems, size, dtype := inputs([]byte(tt.dims), []byte(tt.types))
		assert.Equal(t, tt.nelems, nelems, tt.dims)
		assert.Equal(t, tt.bytes, size, tt.dims)
		assert.Equal(t, tt.dtype, dtype, tt.dims)
	}
}
