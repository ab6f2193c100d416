// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// ofReplicas says which replicas hash otherwise than most, where that is known.
func ofReplicas(f *model.Finding) string {
	ev, ok := evidence.As[evidence.Replica](f.Evidence)
	if !ok || len(ev.Held) < 2 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, ": replicas of group %s hold different parameters after step %d: from element %d of %d on, ", ev.Group, ev.Step, ev.Start, ev.Total)
	for i, h := range ev.Held[:min(len(ev.Held), namedValues)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s on %s", h.Value, Plural(int64(h.Count), "rank"))
		if (i > 0 || !ev.Decided) && len(h.Ranks) > 0 {
			fmt.Fprintf(&b, " (%s)", firstRanks(&h))
		}
	}
	if more := ev.Hashes - namedValues; more > 0 {
		fmt.Fprintf(&b, ", and %s", Plural(int64(more), "more value"))
	}
	if ev.Replicas > 0 {
		fmt.Fprintf(&b, "; told by %s of %s", Thousands(int64(ev.Told)), Plural(int64(max(ev.Replicas, ev.Told)), "rank"))
	}
	if ev.Slices > 1 {
		fmt.Fprintf(&b, "; %d slices differ", ev.Slices)
	}
	if !ev.Decided {
		b.WriteString("; who is wrong is not decided")
	} else if len(ev.GPUs) == 1 {
		fmt.Fprintf(&b, "; its GPU is %s", ev.GPUs[0])
	}
	return b.String()
}
