// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSpans(t *testing.T) {
	for _, tt := range []struct {
		ranks  []int64
		most   int
		want   string
		listed int
	}{
		{nil, 4, "", 0},
		{[]int64{3}, 4, "3", 1},
		{[]int64{3, 4}, 4, "3 4", 2},
		{[]int64{3, 4}, 1, "3-4", 2},
		{[]int64{0, 1, 2, 5, 7, 8, 9}, 4, "0-2 5 7-9", 7},
		{[]int64{0, 1, 2, 5, 7, 8, 9}, 2, "0-2 5", 4},
		{[]int64{0, 2, 4}, 0, "", 0},
		{[]int64{9, 3, 4, 5}, 4, "9 3-5", 4}, // as they come
	} {
		spans, listed := Spans(tt.ranks, tt.most)
		assert.Equal(t, tt.want, strings.Join(spans, " "), tt.ranks)
		assert.Equal(t, tt.listed, listed, tt.ranks)
	}
}
