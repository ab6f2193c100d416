// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// epochClaims say what each class is; the sentence goes on with what decided it.
var epochClaims = map[string]string{
	model.ClassMixed:       "save %d is mixed",
	model.ClassPartial:     "save %d is not whole, and nothing of it moves",
	model.ClassWeightsOnly: "save %d is complete, weights only: cannot resume training",
	model.ClassRevoked:     "save %d, the newest that could be recovered, can be no more",
}

// ofEpoch says what is wrong with a save, who does not fit, and what can be recovered.
func ofEpoch(f *model.Finding) string {
	claim, ok := epochClaims[f.Class]
	if !ok {
		return ""
	}
	ev, ok := evidence.As[evidence.Checkpoint](f.Evidence)
	if !ok {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, ": "+claim, ev.Save)
	if f.Class == model.ClassMixed {
		for i, h := range ev.Held {
			b.WriteString([]string{": ", ", "}[min(i, 1)])
			fmt.Fprintf(&b, "%s %d", holders(h.Domains), h.Epoch)
			if i > 0 || h.Domains == 1 {
				fmt.Fprintf(&b, " (%s)", first(h.First, h.Domains))
			}
		}
	} else if len(ev.Missing) > 0 && f.Class != model.ClassWeightsOnly {
		fmt.Fprintf(&b, ": %d of %d domains do not confirm it, the first %s, which is %s", ev.MissingCount, ev.Domains, ev.Missing[0].Domain, ev.Missing[0].State)
	}
	if ev.Frontier == nil {
		b.WriteString("; no save is known that can be recovered")
	} else {
		fmt.Fprintf(&b, "; the newest that can be recovered is %d", *ev.Frontier)
	}
	return b.String()
}

func holders(n int) string {
	if n == 1 {
		return "1 domain holds"
	}
	return fmt.Sprintf("%d domains hold", n)
}

func first(name string, of int) string {
	if of == 1 {
		return name
	}
	return "the first " + name
}
