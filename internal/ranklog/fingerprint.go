// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"math"
	"strings"
)

// ofMismatch reads "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, ...), but
// Rank 3 is running collective: CollectiveFingerPrint(...)".
func ofMismatch(s string) (st statement, ok bool) {
	st.by, st.rank = -1, -1
	s, _, _ = strings.Cut(s, "Collectives differ in")
	for {
		by, rest, found := strings.Cut(s, " collective: ")
		if !found {
			break
		}
		said := rest
		if next := strings.Index(rest, ", but "); next >= 0 {
			said = rest[:next]
		}
		if rank := lastRank(by); rank >= 0 {
			c := call{rank: rank, work: workOf(said)}
			if len(st.calls) == 0 {
				st.by = rank
			}
			if c.op != "" {
				st.calls = append(st.calls, c)
			}
		}
		s = rest[len(said):]
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
