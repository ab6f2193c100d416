// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/sim/hang"
)

// Tally sums up cases.
type Tally struct {
	cells map[key]*sum
	all   sum
	quiet sum // of healthy jobs
}

type key struct {
	family, evidence string
	rate             int
}

// sum is of one cell of a table.
type sum struct {
	jobs, decided, right, victims int
	faults, told, listed, silent  int
	wronged, hidden               int
	candidates, candidated        int
}

func (s *sum) add(o *Outcome) {
	s.jobs++
	s.decided += o.Decided
	s.right += o.Right
	s.victims += o.Victims
	if o.Candidates > 0 {
		s.candidates += o.Candidates
		s.candidated++
	}
	for _, f := range o.Faults {
		s.faults++
		switch f {
		case Told:
			s.told++
		case Candidate:
			s.listed++
		case Silent:
			s.silent++
		case Wronged:
			s.wronged++
		case Hidden:
			s.hidden++
		}
	}
}

// Add takes a case.
func (t *Tally) Add(c *Case) {
	if t.cells == nil {
		t.cells = map[key]*sum{}
	}
	k := key{c.Family, c.Evidence, c.Rate}
	if t.cells[k] == nil {
		t.cells[k] = &sum{}
	}
	t.cells[k].add(&c.Outcome)
	if c.Family == hang.Healthy {
		t.quiet.add(&c.Outcome)
	} else {
		t.all.add(&c.Outcome)
	}
}

func share(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// Missed lists the aims and floors that were not reached.
func (t *Tally) Missed() []string { return append(t.aims(), t.below()...) }

func (t *Tally) aims() (out []string) {
	a := &t.all
	if a.decided > 0 && float64(a.right) < 0.99*float64(a.decided) {
		out = append(out, fmt.Sprintf("precision: got %s; want 99 %%", share(a.right, a.decided)))
	}
	if a.victims > 0 {
		out = append(out, fmt.Sprintf("victims named: got %d; want 0", a.victims))
	}
	if open := a.listed + a.silent; open > 0 && float64(a.listed) < 0.99*float64(open) {
		out = append(out, fmt.Sprintf("truth among candidates: got %s; want 99 %%", share(a.listed, open)))
	}
	if t.quiet.decided > 0 {
		out = append(out, fmt.Sprintf("healthy jobs: got %d findings; want 0", t.quiet.decided))
	}
	return out
}

// floored is a cell with a floor.
type floored struct {
	kind, sight string
	rate        int
}

// byFloor sums up what one floor counts for.
func (t *Tally) byFloor() (order []floored, sums map[floored]*sum) {
	sums = map[floored]*sum{}
	for _, k := range t.keys() {
		f := floored{faultKind(k.family, k.evidence), sight(k.evidence), k.rate}
		if f.kind == "" || k.evidence == "only_active" && k.family == hang.WrongSizeShort {
			continue
		}
		if sums[f] == nil {
			sums[f] = &sum{}
			order = append(order, f)
		}
		sums[f].merge(t.cells[k])
	}
	return order, sums
}

// below lists floors.
func (t *Tally) below() (out []string) {
	order, sums := t.byFloor()
	for _, f := range order {
		s := sums[f]
		if floor := Floor(f.kind, f.sight, f.rate); s.faults > 0 && float64(s.told) < floor*float64(s.faults) {
			out = append(out, fmt.Sprintf("%s, %s, %d %% missing: got %d of %d faults told; want %.0f %%", f.kind, f.sight, f.rate, s.told, s.faults, 100*floor))
		}
	}
	return out
}

// printFloors writes the shares that have floors, and these in brackets.
func (t *Tally) printFloors(w io.Writer) {
	order, sums := t.byFloor()
	fmt.Fprint(w, "\n| fault | dumps |")
	for _, rate := range Rates {
		fmt.Fprintf(w, " %d %% missing |", rate)
	}
	fmt.Fprintln(w, "\n| --- | --- |"+strings.Repeat(" --- |", len(Rates)))
	seen := map[floored]bool{}
	for _, f := range order {
		f.rate = 0
		if seen[f] {
			continue
		}
		seen[f] = true
		fmt.Fprintf(w, "| %s | %s |", f.kind, f.sight)
		for _, f.rate = range Rates {
			s := sums[f]
			if s == nil {
				s = &sum{}
			}
			fmt.Fprintf(w, " %s of %d (%.0f) |", share(s.told, s.faults), s.faults, 100*Floor(f.kind, f.sight, f.rate))
		}
		fmt.Fprintln(w)
	}
}

func (t *Tally) keys() (out []key) {
	for _, family := range append([]string{hang.Healthy}, hang.Families()...) {
		for _, evidence := range EvidenceNames {
			for _, rate := range Rates {
				if k := (key{family, evidence, rate}); t.cells[k] != nil {
					out = append(out, k)
				}
			}
		}
	}
	return out
}

// Print writes the tables: what was decided by family and rate, and the aims.
func (t *Tally) Print(w io.Writer) {
	fmt.Fprintln(w, "| family | missing | faults | told | right of decided | among candidates | silent | victims | candidates |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	var order []key
	rows := map[key]*sum{}
	for _, k := range t.keys() {
		row := key{family: k.family, rate: k.rate}
		if rows[row] == nil {
			rows[row] = &sum{}
			order = append(order, row)
		}
		rows[row].merge(t.cells[k])
	}
	slices.SortStableFunc(order, func(a, b key) int { return index(a.family) - index(b.family) })
	for _, k := range order {
		rows[k].write(w, fmt.Sprintf("%s | %d %%", k.family, k.rate))
	}
	t.all.write(w, "all with a fault | ")
	t.quiet.write(w, "all healthy | ")
	t.all.writeFates(w)
	t.printFloors(w)
}

func index(family string) int { return slices.Index(hang.Families(), family) }

func (s *sum) merge(o *sum) {
	s.jobs += o.jobs
	s.decided += o.decided
	s.right += o.right
	s.victims += o.victims
	s.faults += o.faults
	s.told += o.told
	s.listed += o.listed
	s.silent += o.silent
	s.wronged += o.wronged
	s.hidden += o.hidden
	s.candidates += o.candidates
	s.candidated += o.candidated
}

// writeFates says what became of all faults, also of those that "among candidates" leaves out.
func (s *sum) writeFates(w io.Writer) {
	open := s.faults - s.told
	fmt.Fprintf(w, "\nOf %d faults %d were told, %d were among the candidates, %d were silent, %d hidden, %d had something wrong said instead. "+
		"Of all that were not told, %s were among the candidates.\n", s.faults, s.told, s.listed, s.silent, s.hidden, s.wronged, share(s.listed, open))
}

func (s *sum) write(w io.Writer, name string) {
	mean := "-"
	if s.candidated > 0 {
		mean = fmt.Sprintf("%.1f", float64(s.candidates)/float64(s.candidated))
	}
	fmt.Fprintf(w, "| %s | %d | %s | %d of %d | %d of %d | %d | %d | %s |\n", name, s.faults, share(s.told, s.faults), s.right, s.decided,
		s.listed, s.listed+s.silent, s.silent, s.victims, mean)
}
