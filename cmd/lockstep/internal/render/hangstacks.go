// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// maxStacksShown bounds the call stacks that are printed: those of a few ranks.
const maxStacksShown = 8

// namedStack is a call stack and whose it is.
type namedStack struct {
	title, text string
}

// stacks prints the call stacks of those at fault, and of who differs, each once.
func (p *printer) stacks(r *desync.Report) {
	seen := map[string]bool{}
	for i := range r.Roots {
		for _, s := range stacksOf(&r.Roots[i]) {
			if seen[s.text] || len(seen) >= maxStacksShown {
				continue
			}
			seen[s.text] = true
			p.namedStack(s)
		}
	}
}

func (p *printer) namedStack(s namedStack) {
	p.Line("%s", p.Paint(report.Bold, report.Cut(report.Clean(s.title), 2*report.MaxName)))
	frames, left := report.ShownFrames(s.text)
	for _, f := range frames {
		p.Line("    %s", report.Cut(report.Clean(f), 2*report.MaxName))
	}
	if left > 0 {
		p.Line("    and %s", report.Plural(int64(left), "more frame"))
	}
	p.Line("")
}

// stacksOf lists the call stacks of a root: those of its members, ranks that stand at the same
// place in the same call together, and that of who waits, where no member has it.
func stacksOf(root *desync.Root) (out []namedStack) {
	type place struct{ what, state, stack string }
	at := map[place][]int64{}
	var order []place
	of := map[string]bool{}
	for _, m := range root.Members {
		if m.Stack == "" {
			continue
		}
		k := place{m.What, m.State, m.Stack}
		if at[k] == nil {
			order = append(order, k)
		}
		at[k] = append(at[k], m.Rank)
		of[m.Stack] = true
	}
	for _, k := range order {
		out = append(out, namedStack{stackTitle(at[k], k.what, k.state), k.stack})
	}
	if s := root.Finding.Stack; s != "" && !of[s] {
		title := "Call stack of " + report.HangPlace(&root.Finding)
		if op := opText(&root.Op); op != "" {
			title = "Call stack of one that waits in " + op
		}
		out = append(out, namedStack{title, s})
	}
	return out
}

// stackTitle says whose call stack it is, and of which call: the last one, of who is in none
// that the root is about.
func stackTitle(of []int64, what, state string) string {
	who := report.SpansOf(of, model.Optional[int64]{})
	if last, ok := strings.CutPrefix(what, desync.LastCall); ok {
		return "Last call of " + who + ": " + last
	}
	if what == "" {
		return "Call stack of " + who + " (" + state + ")"
	}
	return "Call stack of " + who + ", in " + what
}
