// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// hangEvidence is what the evidence of a hang says that people read; its JSON has all.
type hangEvidence struct {
	Members  int64    `json:"members"`
	Joined   int64    `json:"members_in_it"`
	Done     int64    `json:"members_through"`
	Missing  int64    `json:"members_not_come"`
	Unknown  int64    `json:"members_unknown"`
	Inferred bool     `json:"members_inferred"`
	Lag      int64    `json:"behind_operations"`
	Want     string   `json:"most_called"`
	Got      string   `json:"called"`
	Sent     int64    `json:"elements_sent"`
	Received int64    `json:"elements_received"`
	Witness  string   `json:"witness"`
	Order    []string `json:"order"`
	Notes    []string `json:"notes"`
}

// evidenceLines says in words what decided, one piece a line.
func evidenceLines(f *model.Finding) (lines []string) {
	var e hangEvidence
	if json.Unmarshal([]byte(f.Evidence), &e) != nil {
		return []string{clean(f.Evidence)}
	}
	add := func(text string) { lines = append(lines, clean(text)) }
	if e.Members > 0 {
		add(e.membersText())
	}
	switch {
	case e.Want == "" && e.Got == "":
	case f.RanksCount.Or(int64(len(f.Ranks))) >= e.Members: // nobody is most
		add(fmt.Sprintf("some called %s, some %s", e.Want, e.Got))
	default:
		add(fmt.Sprintf("most called %s; who differs called %s", e.Want, e.Got))
	}
	if e.Sent != e.Received {
		add(fmt.Sprintf("the members send %s and expect %s", plural(e.Sent, "element"), plural(e.Received, "element")))
	}
	if e.Lag > 0 {
		add("behind the others by " + plural(e.Lag, "operation"))
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

func (e *hangEvidence) membersText() string {
	text := plural(e.Members, "member")
	if e.Inferred {
		text += " (as far as recorded)"
	}
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{{e.Joined, "in it"}, {e.Done, "through"}, {e.Missing, "not come"}, {e.Unknown, "unknown"}} {
		if p.n > 0 {
			parts = append(parts, thousands(p.n)+" "+p.what)
		}
	}
	if len(parts) == 0 {
		return text
	}
	return text + ": " + strings.Join(parts, ", ")
}
