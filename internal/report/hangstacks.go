// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// The limits of the call stacks that are printed: those of a few ranks, as deep as one
// screen.
const (
	maxStacksShown = 8
	maxFramesShown = 24
)

// namedStack is a call stack and whose it is.
type namedStack struct {
	title, text string
}

// stacks prints the call stacks of those at fault, and of who differs, each once.
func (p *Printer) stacks(r *desync.Report) {
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

func (p *Printer) namedStack(s namedStack) {
	p.Line("%s", p.Paint(Bold, Cut(Clean(s.title), 2*MaxName)))
	frames, left := ShownFrames(s.text)
	for _, f := range frames {
		p.Line("    %s", Cut(Clean(f), 2*MaxName))
	}
	if left > 0 {
		p.Line("    and %s", Plural(int64(left), "more frame"))
	}
	p.Line("")
}

// ShownFrames returns the frames of a call stack to print, and how many are left out. Where there
// are those of C++ and of Python, neither hides the other.
func ShownFrames(text string) (shown []string, left int) {
	all := strings.Split(text, "\n")
	var count [2]int
	for _, f := range all {
		count[language(f)]++
	}
	var room [2]int
	for k := range room {
		room[k] = max(maxFramesShown/2, maxFramesShown-count[1-k])
	}
	for _, f := range all {
		k := language(f)
		if room[k] <= 0 {
			left++
			continue
		}
		room[k]--
		shown = append(shown, f)
	}
	return shown, left
}

// language is 1 of a frame of Python.
func language(frame string) int {
	if strings.Contains(frame, ".py:") || strings.Contains(frame, "(<") {
		return 1
	}
	return 0
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
		title := "Call stack of " + HangPlace(&root.Finding)
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
	who := SpansOf(of, model.Optional[int64]{})
	if last, ok := strings.CutPrefix(what, desync.LastCall); ok {
		return "Last call of " + who + ": " + last
	}
	if what == "" {
		return "Call stack of " + who + " (" + state + ")"
	}
	return "Call stack of " + who + ", in " + what
}
