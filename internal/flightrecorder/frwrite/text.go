// SPDX-License-Identifier: Apache-2.0

package frwrite

import (
	"strconv"
	"strings"
)

// minorOf returns the number behind the first dot, 0 where there is none.
func minorOf(version string) int {
	_, minor, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		return 0
	}
	return n
}

// ranksText writes members as PyTorch's Python side prints a list.
func ranksText(ranks []int64) string {
	b := []byte{'['}
	for i, r := range ranks {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, r, 10)
	}
	return string(append(b, ']'))
}
