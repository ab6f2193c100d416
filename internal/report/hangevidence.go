// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// HangEvidence says in words what decided, one piece a line.
func HangEvidence(f *model.Finding) (lines []string) {
	e, ok := evidence.As[evidence.Hang](f.Evidence)
	if !ok {
		return []string{Clean(evidence.Encode(f.Evidence))}
	}
	add := func(text string) { lines = append(lines, Clean(text)) }
	if e.Members > 0 {
		add(membersText(e))
	}
	switch {
	case e.Want == "" && e.Got == "":
	case f.RanksCount.Or(int64(len(f.Ranks))) >= int64(e.Members): // nobody is most
		add(fmt.Sprintf("some called %s, some %s", e.Want, e.Got))
	default:
		add(fmt.Sprintf("most called %s; who differs called %s", e.Want, e.Got))
	}
	if e.Sent != e.Received {
		add(fmt.Sprintf("the members send %s and expect %s", Plural(e.Sent, "element"), Plural(e.Received, "element")))
	}
	if e.Lag > 0 {
		add("behind the others by " + Plural(e.Lag, "operation"))
	}
	if e.Witness != "" {
		add("witness: " + e.Witness)
	}
	for _, o := range e.Order {
		add(o)
	}
	for _, n := range e.Notes {
		add(n)
	}
	return lines
}

func membersText(e *evidence.Hang) string {
	text := Plural(int64(e.Members), "member")
	if e.Inferred {
		text += " (as far as recorded)"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{e.Joined, "in it"}, {e.Done, "through"}, {e.Missing, "not come"}, {e.Unknown, "unknown"}} {
		if p.n > 0 {
			parts = append(parts, Thousands(int64(p.n))+" "+p.what)
		}
	}
	if len(parts) == 0 {
		return text
	}
	return text + ": " + strings.Join(parts, ", ")
}
