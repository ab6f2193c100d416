// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"strings"
)

// group is a process group as the watchdog names it: "PG ID 3 PG GUID 7(tp)". Local is the
// process's own number and differs between ranks; name is that of all. The zero group is one that
// a line does not name.
type group struct{ name, desc string }

// unnamed reports whether a line named no group.
func (g group) unnamed() bool { return g == group{} }

// whole reports whether a group has all ranks by its name.
func (g group) whole() bool {
	return g.desc == defaultGroup || g.name == "0" && (g.desc == "" || g.desc == "undefined")
}

const defaultGroup = "default_pg"

// maxGroupName bounds the names of groups: hashes have 40 bytes.
const maxGroupName = 256

// work is an operation that a line names.
type work struct {
	seq     int64
	op      string // OpType, as written
	in, out int64  // elements; -1: not written
	timeout int64  // ms; -1: not written
	// shape and kind are those of the first tensor, as a fingerprint has them; empty: not written.
	shape, kind string
}

// said is one line of the watchdog or of the heartbeat monitor.
type said struct {
	group     group
	groupRank int64 // the rank in the group; -1: not written
	work      work
	hasWork   bool // it waits in work
	ran       int64
	enqueued  int64 // -1: not written, or none
	completed int64
	hasStatus bool
	stuck     bool  // the watchdog itself stands still
	stuckFor  int64 // s; 0: not written
	from      int64 // the rank that timed out; -1: none
	noted     bool  // it is a line of the watchdog at all
	log       int   // of which it is
	spell     int64
	stamp     moment
}

// Marks of the lines, each with the versions of PyTorch that write it.
var (
	markCut       = []byte("Watchdog caught collective")                     // the beginning of markCaught
	markCaught    = []byte("Watchdog caught collective operation timeout: ") // 1.8 on
	markBlocking  = []byte("timed out in blocking wait")                     // all
	markStatus    = []byte("failure detected by watchdog at work sequence id: ")
	markTimeout   = []byte("Timeout at NCCL work: ")                                                // 2.2 to 2.4
	markException = []byte("Exception (either an error or timeout) detected by watchdog at work: ") // 2.4 to 2.6
	markDump      = []byte("Received a dump signal due to a collective timeout from")
	markStuck     = []byte("CCL's watchdog got stuck for ")
	markHeartbeat = []byte("Heartbeat monitor timed out! Process will be terminated") // 2.2 to 2.4
	markGroup     = []byte("[PG ")
	markRank      = []byte("[Rank ")
)

// marks are the texts that a log with lines of the watchdog has.
var marks = [][]byte{markCaught, markStatus, markTimeout, markException, markDump, markStuck, markHeartbeat, markBlocking}

// parse reads what one rank wrote in a line.
func parse(s []byte) said {
	out := said{groupRank: -1, enqueued: -1, completed: -1, from: -1}
	marked := false
	for _, m := range marks {
		marked = marked || bytes.Contains(s, m)
	}
	if !marked {
		return out
	}
	out.where(s)
	switch {
	case bytes.Contains(s, markCaught), bytes.Contains(s, markBlocking):
		var ok bool
		if out.work, ok = readWork(s); !ok {
			return out
		}
		out.hasWork, out.noted = true, true
		out.ran, _ = after(s, " ran for ")
	default:
		out.status(s)
	}
	return out
}

// where reads the group and the rank in it: "[PG ID 0 PG GUID 0(default_pg) Rank 3]" since 2.5,
// "[PG 0 (default_pg) Rank 3]" and "[PG 1 Rank 3]" in 2.3 and 2.4, "[Rank 3]" before.
func (o *said) where(s []byte) {
	if i := bytes.Index(s, markGroup); i >= 0 {
		rest := s[i+len(markGroup):]
		end := bytes.Index(rest[:min(len(rest), 2*maxGroupName)], []byte(" Rank "))
		if end > 0 {
			name := string(rest[:end])
			if _, guid, ok := strings.Cut(name, "PG GUID "); ok {
				name = guid
			}
			o.group = groupOf(name)
			if n, _, ok := number(rest[end+len(" Rank "):]); ok && n >= 0 && n <= maxRank {
				o.groupRank = n
			}
			return
		}
	}
	if n, ok := after(s, string(markRank)); ok && n >= 0 && n <= maxRank {
		o.groupRank = n
	}
}

// groupOf reads "7(tp)", "0 (default_pg)" and "7".
func groupOf(s string) group {
	name, desc, _ := strings.Cut(s, "(")
	name, desc = strings.TrimSpace(name), strings.TrimSuffix(strings.TrimSpace(desc), ")")
	if len(name) > maxGroupName || len(desc) > maxGroupName || strings.ContainsAny(name, "[]:") {
		return group{}
	}
	if desc == "undefined" {
		desc = ""
	}
	return group{name, desc}
}

// readWork reads "WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000)".
// Other vendors' backends write their own name in the place of NCCL; before 2.1 there are no
// numbers of elements.
func readWork(s []byte) (w work, ok bool) {
	w.in, w.out, w.timeout = -1, -1, -1
	i := bytes.Index(s, []byte("CCL(SeqNum="))
	if i < 0 {
		return w, false
	}
	s = s[i:]
	if bytes.IndexByte(s[len("CCL("):], ')') < 0 { // it is cut
		return w, false
	}
	if w.seq, ok = after(s, "SeqNum="); !ok || w.seq < 0 {
		return w, false
	}
	at := bytes.Index(s, []byte("OpType="))
	if at < 0 {
		return w, false
	}
	op := s[at+len("OpType="):]
	end := bytes.IndexAny(op[:min(len(op), maxOp+1)], ",)")
	if end <= 0 {
		return w, false
	}
	w.op = string(op[:end])
	for _, f := range []struct {
		mark string
		to   *int64
	}{{"NumelIn=", &w.in}, {"NumelOut=", &w.out}, {"Timeout(ms)=", &w.timeout}} {
		if n, ok := after(s, f.mark); ok && n >= 0 {
			*f.to = n
		}
	}
	return w, true
}

// cutBehind reports whether a line ends with the number behind a mark: it is cut, perhaps within that.
func cutBehind(s, mark []byte) bool {
	rest := bytes.TrimLeft(s[bytes.Index(s, mark)+len(mark):], " ")
	return len(bytes.TrimLeft(rest, "0123456789")) == 0
}

// maxOp bounds the names of operations: the longest known one has 24 bytes.
const maxOp = 64

// status reads how far the rank had come on a group, and which work had failed there.
func (o *said) status(s []byte) {
	o.stuck = bytes.Contains(s, markStuck) || bytes.Contains(s, markHeartbeat)
	o.noted = o.stuck
	o.stuckFor, _ = after(s, string(markStuck))
	for _, m := range [][]byte{markStatus, markTimeout, markException} {
		if seq, ok := after(s, string(m)); ok && seq >= 0 && !cutBehind(s, m) {
			o.work, o.hasWork, o.noted = work{seq: seq, in: -1, out: -1, timeout: -1}, true, true
		}
	}
	if bytes.Contains(s, markDump) {
		o.noted = true
		if n, ok := after(s, "timeout from  rank "); ok {
			o.from = n
		} else if n, ok := after(s, "timeout from rank "); ok {
			o.from = n
		}
	}
	var e, c bool
	for _, f := range []struct {
		enqueued, completed string
	}{
		{"last enqueued work:", "last completed work:"}, // 2.6 on
		{"last enqueued NCCL work:", "last completed NCCL work:"},
		{"Last enqueued NCCL work:", "last completed NCCL work:"},
	} {
		if e && c {
			break
		}
		o.enqueued, e = after(s, f.enqueued)
		o.completed, c = after(s, f.completed)
	}
	o.hasStatus = e && c
}
