// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// What surrounds the generated part of docs/gpu.md.
const (
	begin = "<!-- Written by go generate ./gpukit/runs from docs/gpu/runs.jsonl. -->\n"
	end   = "<!-- End of what is written. -->\n"
)

// none is the text where nothing was run.
const none = "not yet"

// document returns docs/gpu.md with its generated part replaced.
func (all runs) document(text string) (string, error) {
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("find the part to write: got none; want it between %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	var b strings.Builder
	if len(all) == 0 {
		b.WriteString("\nNo run yet: **nothing of Lockstep has been run on a GPU.**\n\n")
	}
	for i := len(all) - 1; i >= 0; i-- {
		section(&b, all[i])
	}
	return before + begin + b.String() + end + after, nil
}

func section(b *strings.Builder, r *report.Report) {
	fmt.Fprintf(b, "\n### %s, %s\n\n", device(r), r.Began.Format("2 January 2006"))
	var facts []string
	for _, name := range []string{"driver", "cuda of pytorch", "nccl", "pytorch", "python", "c library", "kernel", "system", "busy"} {
		if v := r.Fact(name); v != "" {
			facts = append(facts, name+" "+v)
		}
	}
	fmt.Fprintf(b, "%s. Kit %s. %d shown, %d right on stand-ins, %d not shown, %d failed.\n\n", report.Cell(strings.Join(facts, ", ")), report.Cell(r.Kit),
		r.Count(report.Shown), r.Count(report.StandIn), r.Count(report.NotShown), r.Count(report.Failed))
	b.WriteString("| part | check | | |\n| --- | --- | --- | --- |\n")
	for _, p := range r.Parts {
		for _, c := range p.Checks {
			fmt.Fprintf(b, "| %s | `%s` | %s | %s |\n", report.Cell(p.Name), report.Cell(c.Name), c.Status.Title(), c.Cell())
		}
	}
	b.WriteString(r.Missing())
	b.WriteString("\n")
}

// mark precedes a claim: the part of the kit that shows it, or the part and a
// pattern of its checks' names, as path.Match has them.
var mark = regexp.MustCompile(`(<!-- gpu:([a-z]+)(?:/([a-z*-]+))? -->)([^|<\n]*)`)

// claims returns a document with what is claimed of GPUs replaced.
func (all runs) claims(text string) (string, error) {
	if !mark.MatchString(text) {
		return "", fmt.Errorf("find the claims: got none; want them behind %q", "<!-- gpu:PART -->")
	}
	return mark.ReplaceAllStringFunc(text, func(s string) string {
		m := mark.FindStringSubmatch(s)
		return m[1] + all.claim(m[2], m[3]) + " "
	}), nil
}

// claim returns what the newest run that tried it came to.
func (all runs) claim(part, pattern string) string {
	for i := len(all) - 1; i >= 0; i-- {
		n := map[report.Status]int{}
		for _, p := range all[i].Parts {
			for _, c := range p.Checks {
				if p.Name == part && selects(pattern, c.Name) {
					n[c.Status]++
				}
			}
		}
		if n[report.Shown]+n[report.Failed] == 0 {
			continue
		}
		claim := fmt.Sprintf("%s: %d of %d shown", device(all[i]), n[report.Shown], n[report.Shown]+n[report.Failed]+n[report.NotShown]+n[report.StandIn])
		if n[report.Failed] > 0 {
			claim += fmt.Sprintf(", %d failed", n[report.Failed])
		}
		return claim
	}
	return none
}

// selects reports whether a pattern, or none, is of a check.
func selects(pattern, check string) bool {
	matched, err := path.Match(pattern, check)
	return pattern == "" || err == nil && matched
}
