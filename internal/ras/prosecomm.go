// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// proseComm is a communicator while what is said of it is read.
type proseComm struct {
	Comm
	group    int
	at, away map[int]int // of a rank in Ranks, and in Missing
	budget   *int        // ranks of all communicators
	section  string      // INCOMPLETE, ERROR or MISMATCH
	fault    string      // Initialization or Asynchronous
	fn       string      // the function whose counts follow; empty where statuses do
	tallies  []tally     // of fn, or of statuses
}

// tally is how many members have something in common, and which of them are listed.
type tally struct {
	ranks    int
	what     string // a status, an error, or empty where n counts
	launched int64
	listed   []int
}

// Statuses of members.
const (
	statusNone     = "NOCOMM"
	statusInit     = "INIT"
	statusFinalize = "FINALIZE"
	statusAbort    = "ABORT"
)

func (c *proseComm) line(text string) error {
	if m := proseRank.FindStringSubmatch(text); m != nil {
		return c.members(m)
	}
	if m := proseMissing.FindStringSubmatch(text); m != nil && c.section == "INCOMPLETE" {
		return c.members([]string{"", m[1], "", "", "", "", "", ""})
	}
	if m := proseFunc.FindStringSubmatch(text); m != nil {
		c.settle()
		c.fn = m[1]
		return nil
	}
	if m := proseKind.FindStringSubmatch(text); m != nil {
		c.settle()
		c.fault = m[1]
		return nil
	}
	if m := proseMany.FindStringSubmatch(text); m != nil {
		return c.tally(atoi(m[1]), m[2], m[3])
	}
	if m := proseFault.FindStringSubmatch(text); m != nil {
		return c.tally(atoi(m[1]), "reported", m[2])
	}
	return nil
}

// tally begins a list of members that have something in common.
func (c *proseComm) tally(ranks int, verb, value string) error {
	t := tally{ranks: ranks}
	switch verb {
	case "launched up to operation":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || n > maxCount {
			return fmt.Errorf("read launches: got %.40q; want 0 to %d", value, int64(maxCount))
		}
		t.launched = n
	case "status", "reported":
		t.what = value
	}
	if len(c.tallies) >= maxRanks {
		return fmt.Errorf("got more than %d counts: %w", maxRanks, errTooLarge)
	}
	c.tallies = append(c.tallies, t)
	return nil
}

// members reads a line that lists ranks.
func (c *proseComm) members(m []string) error {
	ranks, err := c.spans(m[1])
	if err != nil {
		return err
	}
	verb, value := m[2], m[3]
	if m[4] != "" {
		verb, value = "reported", m[4]
	}
	if verb != "" {
		if err := c.tally(len(ranks), verb, value); err != nil {
			return err
		}
	}
	for _, rank := range ranks {
		p := Process{Rank: rank, Host: "unknown", PID: -1, CUDADev: -1}
		if m[7] != "" {
			p.Host, p.PID = m[7], atoi(m[6])
			gpu, _, _ := strings.Cut(m[5], ",")
			p.CUDADev = atoi(gpu)
		}
		if err := c.member(p); err != nil {
			return err
		}
	}
	return nil
}

// spans reads "3" or "0-2, 7".
func (c *proseComm) spans(text string) (ranks []int, err error) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		first, last, several := strings.Cut(part, "-")
		if !several {
			last = first
		}
		from, to := atoi(first), atoi(last)
		if from < 0 || to < from || to >= c.Size {
			return nil, fmt.Errorf("read communicator %s: got rank %.40q; want 0 to %d", hashText(c.Hash), part, c.Size-1)
		}
		if *c.budget += to - from + 1; *c.budget > maxRanks {
			return nil, fmt.Errorf("got more than %d ranks: %w", maxRanks, errTooLarge)
		}
		for r := from; r <= to; r++ {
			ranks = append(ranks, r)
		}
	}
	return ranks, nil
}

func (c *proseComm) member(p Process) error {
	if c.section == "INCOMPLETE" {
		c.missing(p).Unresponsive = true
		return nil
	}
	if len(c.tallies) == 0 {
		return fmt.Errorf("read communicator %s: got rank %d without what it has; want a count, a status or an error", hashText(c.Hash), p.Rank)
	}
	t := &c.tallies[len(c.tallies)-1]
	t.listed = append(t.listed, p.Rank)
	if t.what == statusNone {
		c.missing(p)
		return nil
	}
	c.rank(p)
	return nil
}

// rank returns a member that answered, which it adds.
func (c *proseComm) rank(p Process) *Rank {
	i, ok := c.at[p.Rank]
	if !ok {
		i = len(c.Ranks)
		c.at[p.Rank] = i
		c.Ranks = append(c.Ranks, Rank{Process: p})
	}
	if r := &c.Ranks[i]; r.PID < 0 && p.PID >= 0 {
		r.Process = p
	}
	return &c.Ranks[i]
}

func (c *proseComm) missing(p Process) *MissingRank {
	i, ok := c.away[p.Rank]
	if !ok {
		i = len(c.Missing)
		c.away[p.Rank] = i
		c.Missing = append(c.Missing, MissingRank{Process: p})
	}
	return &c.Missing[i]
}

// settle takes over what was listed last.
func (c *proseComm) settle() {
	tallies := c.tallies
	c.tallies = nil
	if len(tallies) == 0 {
		return
	}
	if c.fn != "" {
		c.launches(tallies)
		return
	}
	for i := range tallies {
		for _, rank := range tallies[i].listed {
			if at, ok := c.at[rank]; ok {
				c.state(&c.Ranks[at], tallies[i].what)
			}
		}
		if t := &tallies[i]; len(t.listed) == 0 && 2*t.ranks < c.Size {
			c.Unlisted = append(c.Unlisted, fmt.Sprintf("%d ranks with %s", t.ranks, t.what))
		}
	}
}

func (c *proseComm) state(r *Rank, what string) {
	code := 0
	for n, text := range results {
		if strings.EqualFold(text, what) {
			code = n
		}
	}
	switch {
	case what == statusInit:
		r.InitState = resultInProgress
	case what == statusFinalize:
		r.FinalizeCalled = true
	case what == statusAbort:
		r.AbortFlag = true
	case c.section == "ERROR" && c.fault == "Initialization":
		r.InitState = max(code, 1)
	case c.section == "ERROR":
		r.AsyncError = max(code, 1)
	}
}

// launches gives members their counts. Those of the members that are not listed are known where
// all of them have one count.
func (c *proseComm) launches(tallies []tally) {
	whole := -1 // the tally whose members are not listed
	listed := map[int]bool{}
	for i := range tallies {
		for _, rank := range tallies[i].listed {
			listed[rank] = true
		}
		if len(tallies[i].listed) == tallies[i].ranks {
			continue
		}
		if whole >= 0 || len(tallies[i].listed) > 0 {
			c.unlisted(tallies)
			return
		}
		whole = i
	}
	if whole >= 0 && !c.others(&tallies[whole], listed) {
		c.unlisted(tallies)
		return
	}
	for _, t := range tallies {
		for _, rank := range t.listed {
			r := c.rank(Process{Rank: rank, Host: "unknown", PID: -1, CUDADev: -1})
			r.Counts = append(slices.DeleteFunc(r.Counts, func(n Count) bool { return n.Func == c.fn }), Count{Func: c.fn, N: t.launched})
		}
	}
}

// others lists the members that nothing lists.
func (c *proseComm) others(t *tally, listed map[int]bool) bool {
	if n := c.Size - len(listed) - len(c.away); n != t.ranks || *c.budget+n > maxRanks {
		return false
	}
	*c.budget += t.ranks
	for rank := range c.Size {
		if _, away := c.away[rank]; !listed[rank] && !away {
			t.listed = append(t.listed, rank)
		}
	}
	return len(t.listed) == t.ranks
}

// unlisted says how many have launched how much where it is not said which members these are.
func (c *proseComm) unlisted(tallies []tally) {
	parts := make([]string, 0, len(tallies))
	for i := range tallies[:min(len(tallies), 4)] {
		t := &tallies[i]
		who := fmt.Sprintf("%d ranks", t.ranks)
		if t.ranks == 1 && len(t.listed) == 1 {
			who = fmt.Sprintf("rank %d", t.listed[0])
		}
		parts = append(parts, fmt.Sprintf("%s %d", who, t.launched))
	}
	c.Unlisted = append(c.Unlisted, fmt.Sprintf("launches of %s: %s", c.fn, strings.Join(parts, ", ")))
}
