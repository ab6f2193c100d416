// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"io"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Print writes a case for people: what each rank has open, the truth, and what was said.
func (c *Case) Print(w io.Writer) {
	fmt.Fprintf(w, "# %s\n", c.Name())
	for i := range c.In.States {
		printState(w, &c.In.States[i])
	}
	for _, a := range c.In.Absent {
		fmt.Fprintf(w, "rank %d: no dump: %s %s\n", a.Rank, a.Reason, a.Detail)
	}
	c.PrintVerdict(w)
}

// PrintVerdict writes the truth and what was said.
func (c *Case) PrintVerdict(w io.Writer) {
	for _, f := range c.Truth.Faults {
		fmt.Fprintf(w, "truth: %s of ranks %v (nobody at fault: %v), concerned %v, %s %s %s %d\n", f.Family, f.Ranks, f.Blameless, f.Concerned, f.Op.Group, f.Op.Desc, f.Op.Name, f.Op.Seq)
	}
	fmt.Fprintf(w, "verdict: %s; absent %v\n", c.Report.Verdict, ranksOf(c.Report.Absent))
	for i := range c.Report.Roots {
		f := &c.Report.Roots[i].Finding
		fmt.Fprintf(w, "said: %s rank %v ranks %v op %q candidates %v confidence %.2f\n", f.Class, rankText(f.Rank), f.Ranks, f.Op, f.Candidates, f.Confidence)
	}
	for _, p := range c.Report.Problems {
		fmt.Fprintf(w, "problem: %s\n", p)
	}
	fmt.Fprintf(w, "outcome: %d of %d right, %d victims, faults %v (0 told, 1 candidate, 2 something wrong instead, 3 silent, 4 hidden)\n", c.Outcome.Right, c.Outcome.Decided, c.Outcome.Victims, c.Outcome.Faults)
}

func rankText(r model.Optional[int64]) string {
	if !r.OK {
		return "-"
	}
	return strconv.FormatInt(r.V, 10)
}

func ranksOf(list []model.Absence) (out []int64) {
	for _, a := range list {
		out = append(out, a.Rank)
	}
	return out
}

func printState(w io.Writer, s *model.RankState) {
	fmt.Fprintf(w, "rank %d: only active %v, partial %q\n", s.Rank.Rank, s.OnlyActive, s.Partial)
	for i := range s.Comms {
		c := &s.Comms[i]
		fmt.Fprintf(w, "  %s %s %v shared %v untracked %q:", c.Comm.ID, c.Comm.Name, c.Members, c.P2PShared, c.Untracked)
		for _, f := range c.Frontiers {
			fmt.Fprintf(w, " enqueued %v completed %v kept from %v", rankText(f.Enqueued), rankText(f.Completed), rankText(f.FirstKept))
		}
		fmt.Fprintln(w)
	}
	for i := range s.Ops {
		if o := &s.Ops[i]; !o.Done {
			fmt.Fprintf(w, "    open %s %s %d peer %v %s %s batch %v\n", s.Comms[o.Comm].Comm.ID, o.Name, o.Seq, rankText(o.Peer), o.In, o.InType, rankText(o.Batch))
		}
	}
}
