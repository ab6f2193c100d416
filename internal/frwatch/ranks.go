// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxRanks bounds the ranks of a job: those of the largest.
const MaxRanks = 1 << 17

// ParseRanks reads ranks and spans of them: "0-7", "12".
func ParseRanks(specs []string) ([]int64, error) {
	var out []int64
	for _, spec := range specs {
		first, last, isSpan := strings.Cut(strings.TrimSpace(spec), "-")
		if !isSpan {
			last = first
		}
		from, err1 := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
		to, err2 := strconv.ParseInt(strings.TrimSpace(last), 10, 64)
		if err1 != nil || err2 != nil || from < 0 || to < from || to >= MaxRanks {
			return nil, fmt.Errorf("read ranks: got %q; want a rank below %d, or a span as in \"0-7\"", spec, MaxRanks)
		}
		for r := from; r <= to; r++ {
			out = append(out, r)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
