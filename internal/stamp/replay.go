// SPDX-License-Identifier: Apache-2.0

package stamp

// window remembers which of the last 64 sequence numbers were seen, so that a
// packet counts once though the network reorders.
type window struct {
	top  uint32 // highest number seen
	seen uint64 // bit n: top - n was seen
}

// judgement of a sequence number.
const (
	seqNew = iota
	seqReplayed
	seqFuture
)

// judge says what a number is; ahead is how far it may be beyond the highest.
func (w *window) judge(seq uint32, ahead int64) int {
	switch d := int64(int32(seq - w.top)); {
	case d > ahead:
		return seqFuture
	case d > 0:
		return seqNew
	case d <= -64 || w.seen>>uint(-d)&1 == 1:
		return seqReplayed
	}
	return seqNew
}

// add marks a number that judge called new.
func (w *window) add(seq uint32) {
	d := int64(int32(seq - w.top))
	if d <= 0 {
		w.seen |= 1 << uint(-d)
		return
	}
	w.top = seq
	if d >= 64 {
		w.seen = 0
	} else {
		w.seen <<= uint(d)
	}
	w.seen |= 1
}
