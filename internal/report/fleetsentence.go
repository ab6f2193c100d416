// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// ofFleet says which versions the members of a communicator run, who does not fit, and of how many
// it is known.
func ofFleet(f *model.Finding) string {
	ev, ok := evidence.As[evidence.Fleet](f.Evidence)
	if !ok || len(ev.Held) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(": " + ev.Domain)
	if ev.Model != "" {
		fmt.Fprintf(&b, " of %s", ev.Model)
	}
	b.WriteString(" is ")
	for i, h := range ev.Held {
		if i > 0 {
			b.WriteString(", and ")
		}
		fmt.Fprintf(&b, "%s on %s", strings.Join(h.Versions, " or "), Plural(int64(h.Ranks), "rank"))
		if ev.Domain != string(model.VersionNCCL) {
			fmt.Fprintf(&b, " of %s", Plural(int64(h.Nodes), "node"))
		}
		if i > 0 && h.First != "" {
			fmt.Fprintf(&b, " (the first %s)", h.First)
		}
	}
	fmt.Fprintf(&b, "; known of %s of %s", Thousands(int64(ev.Known)), Plural(int64(ev.Ranks), "rank"))
	if ev.Covers > 0 {
		fmt.Fprintf(&b, "; so are %s of these ranks", Plural(int64(ev.Covers), "further communicator"))
	}
	return b.String()
}
