// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// maxSpans bounds the spans of ranks of a list in a sentence; the attributes of a finding, and JSON,
// have the others.
const maxSpans = 12

// Spans lists ordered ranks: "0-7, 12, 14".
func Spans(list []int64) string { return SpansAtMost(list, maxSpans) }

// SpansAtMost lists ordered ranks in at most so many spans.
func SpansAtMost(list []int64, most int) string {
	parts, listed := model.Spans(list, most)
	return strings.Join(parts, ", ") + more(listed, model.Some(int64(len(list))))
}

// SpansOf names a rank, or several of count.
func SpansOf(list []int64, count model.Optional[int64]) string {
	return SomeRanks(list, int(max(count.Or(0), int64(len(list)))))
}

func more(listed int, count model.Optional[int64]) string {
	if rest := count.Or(0) - int64(listed); rest > 0 {
		return fmt.Sprintf(" and %s more", Thousands(rest))
	}
	return ""
}
