// SPDX-License-Identifier: Apache-2.0

// Package statetest owns a small language in which tests write the states of ranks: one
// row for each rank, with what it has called, so that a case can be read at a glance.
//
//	world 4
//	group W 0-3
//	rank 0-2: W ar 41 done; W ar 42
//	rank 3: W ar 41 done
//	absent 5 dead the node is down
//
// A line is one of:
//
//	world N                      the size of the job
//	group NAME RANKS [FLAG...]   a communicator; RANKS are 0-3,7
//	rank RANKS [{FLAG...}]: ITEM; ITEM...
//	absent RANKS REASON [DETAIL]
//	# a remark
//
// Flags of groups: gloo (its members are not recorded), func and process (what numbers
// count), shared (frontiers count messages, too), untracked, as=ID (its id, where several
// rows are of one). Flags of ranks: partial,
// active (only what is open was recorded), dead, ended, stopped, traced, ras, ring (the
// sources; else a dump), t=S (when the state was taken, s), scope=NAME, host=NAME.
//
// An item is a call, GROUP CALL [SEQ] [FLAG...], or a frontier, GROUP=ENQUEUED/COMPLETED or
// GROUP=ENQUEUED/COMPLETED/FIRSTKEPT, "?" where it is unknown, or GROUP=- where the rank does
// not know the communicator. Without one, frontiers are what the calls show. Calls are ar,
// ag, rs, bc, re, ga, sc, a2a, bar, send>PEER and recv<PEER. Flags of calls: done, started, n=SIZE, in=SIZE,
// out=SIZE, type=NAME, intype=NAME, outtype=NAME, recorded=TEXT (as its source spells it), root=N, batch=N, nth=N, at=S (when it was enqueued, s), limit=S,
// stack=TEXT, wire=PEER (its proxy waits for the wire).
package statetest

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Case is what a text says.
type Case struct {
	WorldSize model.Optional[int64]
	States    []model.RankState
	Absent    []model.Absence
}

// Epoch is second 0 of texts, Unix ns.
const Epoch = int64(1_790_000_000_000_000_000)

// Read returns what the text says.
func Read(tb testing.TB, text string) Case {
	tb.Helper()
	c, err := parse(text)
	require.NoError(tb, err)
	return c
}

type group struct {
	name    string
	members []int64
	flags   map[string]string
}

func (g *group) id() string {
	if as := g.flags["as"]; as != "" {
		return as
	}
	return g.name
}

type parser struct {
	c      Case
	groups []*group
}

func parse(text string) (Case, error) {
	p := &parser{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		if err := p.line(strings.TrimSpace(lines.Text())); err != nil {
			return Case{}, fmt.Errorf("read line %d: %w", n, err)
		}
	}
	return p.c, lines.Err()
}

func (p *parser) line(s string) error {
	word, rest, _ := strings.Cut(s, " ")
	switch word {
	case "", "#":
		return nil
	case "world":
		n, err := strconv.ParseInt(rest, 10, 64)
		p.c.WorldSize = model.Some(n)
		return err
	case "group":
		return p.group(strings.Fields(rest))
	case "rank":
		return p.ranks(rest)
	case "absent":
		return p.absent(rest)
	}
	return fmt.Errorf("got %q; want world, group, rank or absent", word)
}

func (p *parser) group(words []string) error {
	if len(words) < 2 {
		return fmt.Errorf("got %q; want a name and ranks", words)
	}
	members, err := ranks(words[1])
	p.groups = append(p.groups, &group{words[0], members, flags(words[2:])})
	return err
}

func (p *parser) absent(s string) error {
	words := strings.SplitN(s, " ", 3)
	if len(words) < 2 {
		return fmt.Errorf("got %q; want ranks and a reason", s)
	}
	ids, err := ranks(words[0])
	for _, id := range ids {
		a := model.Absence{Rank: id, Reason: model.AbsenceReason(words[1])}
		if len(words) > 2 {
			a.Detail = words[2]
		}
		p.c.Absent = append(p.c.Absent, a)
	}
	return err
}

func (p *parser) ranks(s string) error {
	head, items, ok := strings.Cut(s, ":")
	if !ok {
		return fmt.Errorf("got %q; want ranks, a colon and calls", s)
	}
	list, set, _ := strings.Cut(head, "{")
	ids, err := ranks(strings.TrimSpace(list))
	if err != nil {
		return err
	}
	with := flags(strings.Fields(strings.TrimSuffix(strings.TrimSpace(set), "}")))
	for _, id := range ids {
		r := &reader{p: p, s: newState(id, with)}
		for item := range strings.SplitSeq(items, ";") {
			if err := r.item(strings.TrimSpace(item)); err != nil {
				return fmt.Errorf("rank %d: %w", id, err)
			}
		}
		r.comms()
		p.c.States = append(p.c.States, r.s)
	}
	return nil
}

func newState(id int64, with map[string]string) model.RankState {
	s := model.RankState{
		Rank: model.Rank{Rank: id, HostName: with["host"]}, Source: model.StateFlightRecorder,
		Name: "rank_" + strconv.FormatInt(id, 10), Scope: with["scope"],
	}
	for flag, p := range map[string]model.ProcessState{
		"dead": model.ProcessDead, "ended": model.ProcessEnded, "stopped": model.ProcessStopped, "traced": model.ProcessTraced, "frozen": model.ProcessFrozen,
	} {
		if _, ok := with[flag]; ok {
			s.Process = p
		}
	}
	for flag, from := range map[string]model.StateSource{"ras": model.StateRAS, "ring": model.StateRankEvents} {
		if _, ok := with[flag]; ok {
			s.Source = from
			s.Name += flag
		}
	}
	if _, ok := with["partial"]; ok {
		s.Partial = "it ends within an entry"
	}
	_, s.OnlyActive = with["active"]
	if t, ok := with["t"]; ok {
		s.Time = seconds(t)
	}
	return s
}

// flags reads NAME and NAME=VALUE.
func flags(words []string) map[string]string {
	m := map[string]string{}
	for _, w := range words {
		k, v, _ := strings.Cut(w, "=")
		m[k] = v
	}
	return m
}

// ranks reads 0-3,7.
func ranks(s string) (ids []int64, err error) {
	for part := range strings.SplitSeq(s, ",") {
		first, last, ok := strings.Cut(part, "-")
		if !ok {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read ranks %q: %w", s, err)
		}
		to, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read ranks %q: %w", s, err)
		}
		for id := from; id <= to; id++ {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func seconds(s string) int64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return Epoch + int64(n*1e9)
}
