// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"fmt"
	"slices"
)

// statement is what one rank reports of others: that they did not reach Gloo's monitoredBarrier, or that they
// call another operation (TORCH_DISTRIBUTED_DEBUG=DETAIL).
type statement struct {
	by    int64 // the rank that reports, as the line counts; -1: not written
	rank  int64 // of the line's mark, of its label or of its file; -1: none
	label string
	at    place
	late  []int64 // ranks that did not reach the barrier
	came  []int64 // ranks that did
	whole bool    // all others did
	ran   int64   // ms; 0: not written
	calls []call
	world int64  // of the job; 0: not written
	note  string // what is reported, where it decides nothing
	// closed: a connection was closed. The rank at its other side ended, and what ended it is not known.
	closed bool
}

// call is what a rank calls.
type call struct {
	rank int64
	work
}

// maxStatements bounds the statements that are kept, and the ranks of one.
const maxStatements = 1 << 14

var (
	markBarrier = []byte("onitoredBarrier")
	markRunning = []byte(" collective: ")
	markStore   = []byte("store based barrier on rank: ") // it timed out; "Waiting in" is written in each start
	markJoined  = []byte(" clients joined")
	markNotify  = []byte("has not received the Notify record from remote rank: ") // of Huawei's HCCL
	markCame    = []byte("Successfully processed ranks: ")
)

// behindStatement is within how many lines the reason of a statement follows it.
const behindStatement = 4

// statementOf reads a line; ok is false where it is no statement.
func statementOf(s []byte) (st statement, ok bool) {
	switch {
	case bytes.Contains(s, markStore):
		return ofStore(string(s[:min(len(s), maxLine)]))
	case bytes.Contains(s, markJoined), bytes.Contains(s, markNotify):
		return ofOthersWait(string(s[:min(len(s), maxLine)]))
	case bytes.Contains(s, markBarrier):
		return ofBarrier(string(s[:min(len(s), maxLine)]))
	case bytes.Contains(s, markRunning) && bytes.Contains(s, []byte("ismatch between collectives")):
		return ofMismatch(string(s[:min(len(s), maxLine)]))
	}
	return statement{}, false
}

// statement takes what a rank reports of others.
func (l *reader) statement(tag label, rank int64, s []byte, at place) {
	set := l.set
	if n := len(set.statements); n > 0 {
		last := &set.statements[n-1]
		if last.at.file == at.file && at.line-last.at.line <= behindStatement && last.label == tag.text {
			last.closed = last.closed || bytes.Contains(s, []byte("onnection closed by peer")) || bytes.Contains(s, []byte("onnection reset by peer")) || bytes.Contains(s, []byte("ocket closed"))
			if bytes.Contains(s, []byte("riginal exception")) || bytes.Contains(s, []byte(".cc:")) {
				last.at.line = at.line // it is a part of the statement
			}
			if _, list, ok := bytes.Cut(s, markCame); ok {
				last.came = append(last.came, rankList(string(list))...)
			}
		}
	}
	st, ok := statementOf(s)
	if !ok || len(set.statements) >= maxStatements {
		return
	}
	if rank < 0 {
		if rank = tag.rank; rank < 0 && tag.text == "" {
			rank = set.files[l.file].Rank
		}
	}
	st.rank, st.label, st.at = rank, tag.text, at
	set.statements = append(set.statements, st)
	set.notes++
	l.faulty = max(l.faulty, at.line)
}

// ofGloo is the group of the barriers and comparisons of all ranks.
var ofGloo = group{"gloo", defaultGroup}

// takeStatements makes waits of what ranks report of others, where no watchdog reports what times out. It returns
// what is reported that decides nothing.
func (s *Set) takeStatements(world int64) (rest []string) {
	sure := s.sureOf(max(world, s.world))
	waiting := false
	for _, r := range s.ranks {
		waiting = waiting || len(r.waits) > 0
	}
	seq := int64(1)
	for i := range s.statements {
		for _, c := range s.statements[i].calls {
			seq = max(seq, c.seq)
		}
	}
	for i := range s.statements {
		st := &s.statements[i]
		other := false // its log has marks of another rank alone, and may be that rank's
		if o := s.origins[source{st.at.file, st.label, -1}]; o != nil && len(o.ranks) == 1 {
			if st.label != "" {
				st.rank = o.ranks[0]
			}
			other = st.rank < 0 && st.by >= 0 && o.ranks[0] != st.by
		}
		switch {
		case s.went(st):
		case st.note != "", waiting, other, st.rank >= 0 && st.by >= 0 && st.rank != st.by, !s.first(st):
			rest = addReport(rest, st.said(s))
		case st.world == 0 && !sure[st.kind()].covers(st):
			rest = addReport(rest, st.said(s))
			if st.kind() == ofABarrier && !sure[ofABarrier].part && st.rank >= 0 { // it waits, for whichever rank
				s.someOf = true
				s.take(&statement{by: st.by, at: st.at, ran: st.ran}, seq)
			}
		default:
			st.whole = st.whole && sure[st.kind()].all
			s.someOf = s.someOf || st.world == 0 && !sure[st.kind()].all
			s.take(st, seq)
		}
	}
	return rest
}

// statementKind separates statements on barriers from comparisons of operations.
type statementKind bool

const (
	ofABarrier  statementKind = false
	ofOperation statementKind = true
)

func (st *statement) kind() statementKind { return len(st.calls) > 0 }

// numbering is what is known of the numbers in statements of a kind, which are those of a group.
type numbering struct {
	part bool  // a rank has another number in the group than in the job
	upTo int64 // numbers up to this one are those of the job; -1: none is known to be
	all  bool  // the group has all ranks
}

// sureOf reports how far the numbers in statements are those of the job. The ranks of a group are in order, so that
// where number n is rank n of the job, those in front of it are, too; so is the last rank of the job.
func (s *Set) sureOf(world int64) map[statementKind]*numbering {
	out := map[statementKind]*numbering{ofABarrier: {upTo: -1}, ofOperation: {upTo: -1}}
	for i := range s.statements {
		st := &s.statements[i]
		if st.note != "" || st.by < 0 {
			continue
		}
		n := out[st.kind()]
		rank := st.rank
		if o := s.origins[source{st.at.file, st.label, -1}]; rank < 0 && o != nil && len(o.ranks) == 1 {
			rank = o.ranks[0]
		}
		switch {
		case rank >= 0 && rank != st.by:
			n.part = true
		case rank == st.by:
			n.upTo = max(n.upTo, rank)
		}
		if ended := len(st.late) > 0 && !slices.ContainsFunc(st.late, func(late int64) bool { return !s.ended(late) }); ended { // that is why
			n.upTo, n.all = max(n.upTo, slices.Max(st.late)), true
		}
		for _, number := range st.numbers() {
			if world > 0 && number == world-1 {
				n.upTo, n.all = number, true
			}
		}
	}
	for _, n := range out {
		n.all = n.all || world > 0 && n.upTo == world-1
	}
	return out
}

// numbers are the ranks that a statement has.
func (st *statement) numbers() []int64 {
	out := slices.Concat([]int64{st.by}, st.late, st.came)
	for _, c := range st.calls {
		out = append(out, c.rank)
	}
	return out
}

// covers reports whether all numbers of a statement are those of the job.
func (n *numbering) covers(st *statement) bool {
	return !n.part && slices.Max(st.numbers()) <= n.upTo
}

// went reports whether the rank that reports continued afterwards.
func (s *Set) went(st *statement) bool {
	r := s.ranks[max(st.rank, st.by)]
	return r != nil && r.ranTo(st.at.file) > st.at.line
}

// first reports whether a statement is of the kind of the first one: a comparison of operations fails before or
// after a barrier does, and one of them is the result.
func (s *Set) first(st *statement) bool {
	return len(s.statements[0].calls) > 0 == (len(st.calls) > 0)
}

func addReport(to []string, text string) []string {
	if len(to) < maxNoted && !slices.Contains(to, text) {
		to = append(to, text)
	}
	return to
}

// said is a statement in a sentence.
func (st *statement) said(s *Set) string {
	if st.note != "" {
		return fmt.Sprintf("%s (%s)", st.note, s.where(st.at))
	}
	reporter := "a rank"
	if by := max(st.rank, st.by); by >= 0 {
		reporter = fmt.Sprintf("rank %d", by)
	}
	in := ""
	if st.rank >= 0 && st.by >= 0 && st.rank != st.by {
		in = " of its group"
	}
	switch {
	case len(st.calls) > 1:
		a, b := &st.calls[0], &st.calls[1]
		return fmt.Sprintf("%s reports that rank %d%s calls %s and rank %d calls %s (%s)", reporter, a.rank, in, a.op, b.rank, b.op, s.where(st.at))
	case len(st.late) > 0:
		return fmt.Sprintf("%s reports that %s%s did not reach monitoredBarrier (%s)", reporter, nameRanks(st.late), in, s.where(st.at))
	}
	return fmt.Sprintf("%s reports that monitoredBarrier failed (%s)", reporter, s.where(st.at))
}

// take makes waits of a statement.
func (s *Set) take(st *statement, seq int64) {
	wait := func(rank int64, w work, ran int64) {
		if r := s.rank(rank, st.at); r != nil && !s.ended(rank) {
			w.seq = seq
			r.wait(&said{group: ofGloo, groupRank: rank, work: w, ran: ran, log: -1}, st.at)
		}
	}
	for _, c := range st.calls {
		wait(c.rank, c.work, 0)
	}
	if len(st.calls) > 0 {
		return
	}
	s.world = max(s.world, st.world)
	barrier := work{op: "BARRIER", in: -1, out: -1, timeout: -1}
	for _, rank := range append(st.came, st.by) {
		if rank >= 0 {
			wait(rank, barrier, st.ran)
		}
	}
	for _, rank := range st.late {
		r := s.rank(rank, st.at)
		if r == nil || st.closed || s.ended(rank) || r.order.given() || len(r.waits) > 0 {
			continue
		}
		r.advance(&said{group: ofGloo, groupRank: rank, log: -1}, st.at)
	}
	if st.whole {
		s.met = append(s.met, *st)
	}
}

// meet adds the ranks that reached a barrier since others alone did not.
func (s *Set) meet(world int64) {
	for i := range s.met {
		st := &s.met[i]
		for rank := range world {
			r := s.rank(rank, st.at)
			if r == nil || slices.Contains(st.late, rank) || len(r.waits) > 0 || s.ended(rank) || r.order.given() {
				continue
			}
			r.wait(&said{group: ofGloo, groupRank: rank, work: work{seq: 1, op: "BARRIER", in: -1, out: -1, timeout: -1}, ran: st.ran, log: -1}, st.at)
		}
	}
}
