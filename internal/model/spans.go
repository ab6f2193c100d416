// SPDX-License-Identifier: Apache-2.0

package model

import "strconv"

// Spans writes ordered ranks as people list them, "0-7" and "12", at most as many spans as
// most, and says how many ranks those are.
func Spans(ranks []int64, most int) (spans []string, listed int) {
	for i := 0; i < len(ranks) && len(spans) < most; i = listed {
		listed = i + 1
		for listed < len(ranks) && ranks[listed] == ranks[listed-1]+1 {
			listed++
		}
		first, last := strconv.FormatInt(ranks[i], 10), strconv.FormatInt(ranks[listed-1], 10)
		switch {
		case listed == i+1:
			spans = append(spans, first)
		case listed == i+2 && len(spans)+1 < most: // "3, 4" reads better than "3-4"
			spans = append(spans, first, last)
		default:
			spans = append(spans, first+"-"+last)
		}
	}
	return spans, listed
}
