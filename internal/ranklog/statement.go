// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
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

// ofBarrier reads "[Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 2000 ms", "Rank 0 timed out waiting for
// rank(s) 3 in monitoredBarrier", "Rank 0 timed out in monitoredBarrier after 5 ms." and "Rank 3 successfully reached
// monitoredBarrier, but received errors".
func ofBarrier(s string) (st statement, ok bool) {
	st.by, st.rank = -1, -1
	who, _, failed := strings.Cut(s, " failed to pass ")
	switch {
	case failed:
		at := strings.LastIndex(who, "ank")
		if at < 1 {
			return st, false
		}
		var list string
		list, st.whole = who[at+len("ank"):], strings.HasPrefix(who[at:], "anks ")
		st.late = rankList(list)
		st.by = lastRank(who[:at-1])
	case strings.Contains(s, " timed out "):
		who, late, _ := strings.Cut(s, " timed out ")
		st.by = lastRank(who)
		if _, list, waits := strings.Cut(late, "waiting for rank"); waits {
			st.late, st.whole = rankList(list), true
		}
	case strings.Contains(s, " successfully reached "):
		who, _, _ := strings.Cut(s, " successfully reached ")
		if rank := lastRank(who); rank >= 0 {
			st.by, st.came = rank, []int64{rank}
		}
	}
	for _, mark := range []string{" in ", " after "} {
		if n, ok := after([]byte(s), "onitoredBarrier"+mark); ok && n > 0 {
			st.ran = n
		}
	}
	return st, len(st.late) > 0 || st.by >= 0
}

// ofStore reads "Timed out initializing process group in store based barrier on rank: 2, for key:
// store_based_barrier_key:1 (world_size=8, worker_count=7, timeout=0:30:00)".
func ofStore(s string) (st statement, ok bool) {
	line := []byte(s)
	rank, ok := after(line, string(markStore))
	world, known := after(line, "world_size=")
	joined, counted := after(line, "worker_count=")
	if !counted {
		joined, counted = after(line, "num_workers_joined=")
	}
	if !ok || !known || !counted || !strings.Contains(s, ", timeout") || rank < 0 || rank > maxRank || world < 1 || world > maxRank+1 {
		return st, false
	}
	st.by, st.rank = rank, -1
	if joined >= world {
		st.note = fmt.Sprintf("rank %d reports that the start of a group timed out although %d processes came for %d places: more processes were started, or the store is of an earlier start", rank, joined, world)
		return st, true
	}
	st.came, st.world = []int64{rank}, world
	return st, true
}

// ofOthersWait reads "Timed out after 1801 seconds waiting for clients. 1/3 clients joined." and what HCCL reports of
// the neighbour that a rank of a group waits for: neither names the rank that is the cause.
func ofOthersWait(s string) (st statement, ok bool) {
	st.by, st.rank = -1, -1
	if i := strings.Index(s, string(markJoined)); i >= 0 && strings.Contains(s[:i], "imed out after ") {
		count := s[strings.LastIndexByte(s[:i], ' ')+1 : i]
		joined, total, found := strings.Cut(count, "/")
		if !found || strings.Trim(joined+total, "0123456789") != "" {
			return st, false
		}
		st.note = fmt.Sprintf("the store of the job reports that %s of %s processes came", joined, total)
		return st, true
	}
	_, rest, ok := strings.Cut(s, string(markNotify))
	if !ok {
		return st, false
	}
	remote, _, whole := strings.Cut(strings.TrimPrefix(rest, "["), "]")
	if !whole || len(remote) > maxOp {
		return st, false
	}
	st.note = fmt.Sprintf("a rank of a group of HCCL reports that nothing came from rank %s of that group", remote)
	return st, true
}

// lastRank reads the rank at the end of a text: "[Rank 0]: ", "Rank 3"; -1: there is none.
func lastRank(s string) int64 {
	at := strings.LastIndex(s, "ank ")
	if at < 0 {
		return -1
	}
	if n, _, ok := number([]byte(s[at+len("ank "):])); ok && n >= 0 && n <= maxRank {
		return n
	}
	return -1
}

// rankList reads "s 4, 5", "(s) 3", " [1, 2]".
func rankList(s string) (ranks []int64) {
	s = strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(s, "(s)"), "s"), " :[(")
	for len(ranks) < maxStatements {
		n, length, ok := number([]byte(s))
		if !ok || n < 0 || n > maxRank {
			return ranks
		}
		ranks = append(ranks, n)
		rest := strings.TrimLeft(s[length:], " ,")
		if rest == s[length:] {
			return ranks
		}
		s = rest
	}
	return ranks
}

// ofMismatch reads "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, ...), but
// Rank 3 is running collective: CollectiveFingerPrint(...)".
func ofMismatch(s string) (st statement, ok bool) {
	st.by, st.rank = -1, -1
	s, _, _ = strings.Cut(s, "Collectives differ in")
	for {
		who, rest, found := strings.Cut(s, " collective: ")
		if !found {
			break
		}
		print := rest
		if next := strings.Index(rest, ", but "); next >= 0 {
			print = rest[:next]
		}
		if rank := lastRank(who); rank >= 0 {
			c := call{rank: rank, work: workOf(print)}
			if len(st.calls) == 0 {
				st.by = rank
			}
			if c.op != "" {
				st.calls = append(st.calls, c)
			}
		}
		s = rest[len(print):]
	}
	return st, len(st.calls) > 1
}

// workOf reads a fingerprint: "CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[20, 10], TensorDtypes=Float, ...".
func workOf(s string) work {
	w := work{seq: 1, in: -1, out: -1, timeout: -1}
	if n, ok := after([]byte(s), "SequenceNumber="); ok && n > 0 {
		w.seq = n
	}
	_, op, named := strings.Cut(s, "OpType=")
	if !named {
		op = s // of old versions: "REDUCE."
	}
	end := strings.IndexFunc(op, func(c rune) bool { return c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9') })
	if end < 0 {
		end = len(op)
	}
	if end == 0 || end > maxOp {
		return work{}
	}
	w.op = op[:end]
	if _, shape, ok := strings.Cut(s, "TensorShape=["); ok {
		if shape, _, ok := strings.Cut(shape, "]"); ok && len(shape) < maxOp {
			w.shape, w.in = "["+shape+"]", product(shape)
			if w.op == "ALLREDUCE" || w.op == "BROADCAST" { // in place
				w.out = w.in
			}
		}
	}
	if _, kind, ok := strings.Cut(s, "TensorDtypes="); ok {
		kind, _, _ = strings.Cut(kind, ",")
		w.kind = cut(strings.TrimRight(kind, ").")) // as PyTorch names it: Float
	}
	return w
}

// product is how many elements a shape has: "20, 10"; -1: it is none.
func product(shape string) int64 {
	n := int64(1)
	for _, side := range strings.FieldsFunc(shape, func(c rune) bool { return c == ',' || c == ' ' }) {
		of, length, ok := number([]byte(side))
		if !ok || length < len(side) || of < 0 || of > 0 && n > math.MaxInt64/of {
			return -1
		}
		n *= of
	}
	return n
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
func (s *Set) takeStatements() (rest []string) {
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
		if o := s.origins[source{st.at.file, st.label, -1}]; o != nil && len(o.ranks) == 1 {
			st.rank = o.ranks[0]
		}
		switch {
		case s.went(st):
		case st.note != "", waiting, st.rank >= 0 && st.by >= 0 && st.rank != st.by, !s.first(st):
			rest = addReport(rest, st.said(s))
		default:
			s.take(st, seq)
		}
	}
	return rest
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
	who := "a rank"
	if by := max(st.rank, st.by); by >= 0 {
		who = fmt.Sprintf("rank %d", by)
	}
	in := ""
	if st.rank >= 0 && st.by >= 0 && st.rank != st.by {
		in = " of its group"
	}
	switch {
	case len(st.calls) > 1:
		a, b := &st.calls[0], &st.calls[1]
		return fmt.Sprintf("%s reports that rank %d%s calls %s and rank %d calls %s (%s)", who, a.rank, in, a.op, b.rank, b.op, s.where(st.at))
	case len(st.late) > 0:
		return fmt.Sprintf("%s reports that %s%s did not reach monitoredBarrier (%s)", who, nameRanks(st.late), in, s.where(st.at))
	}
	return fmt.Sprintf("%s reports that monitoredBarrier failed (%s)", who, s.where(st.at))
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
