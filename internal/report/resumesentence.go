// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// namedValues is how many values a sentence has, and the ranks that it names of each.
const namedValues = 3

// ofResume says which values ranks have loaded, and who holds another than most.
func ofResume(f *model.Finding) string {
	ev, ok := evidence.As[evidence.Resume](f.Evidence)
	if !ok || len(ev.Fields) == 0 {
		return ""
	}
	field := &ev.Fields[0]
	var b strings.Builder
	fmt.Fprintf(&b, ": ranks have loaded different states: %s", strings.ReplaceAll(field.Name, "_", " "))
	if field.Replica != "" {
		fmt.Fprintf(&b, " of replica %s", field.Replica)
	}
	b.WriteString(" is ")
	for i, h := range field.Held[:min(len(field.Held), namedValues)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s on %s", h.Value, Plural(int64(h.Count), "rank"))
		if (i > 0 || !field.Decided) && len(h.Ranks) > 0 {
			fmt.Fprintf(&b, " (%s)", firstRanks(&h))
		}
	}
	if more := field.Values - namedValues; more > 0 {
		fmt.Fprintf(&b, ", and %s", Plural(int64(more), "more value"))
	}
	if more := ev.FieldsCount - 1; more > 0 {
		fmt.Fprintf(&b, "; %s", Plural(int64(more), "more disagreement"))
	}
	if ev.Of > 0 && field.Replica == "" {
		fmt.Fprintf(&b, "; told by %s of %s", Thousands(int64(field.Told)), Plural(int64(max(ev.Of, field.Told)), "rank"))
	}
	if !field.Decided {
		b.WriteString("; who is wrong is not decided")
	}
	return b.String()
}

func firstRanks(h *evidence.ValueHeld) string {
	names := make([]string, 0, namedValues)
	for _, n := range h.Ranks[:min(len(h.Ranks), namedValues)] {
		names = append(names, strconv.FormatInt(n, 10))
	}
	text := strings.Join(names, ", ")
	if h.Count > len(names) {
		return "the first " + text
	}
	return text
}
