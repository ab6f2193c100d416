// SPDX-License-Identifier: Apache-2.0

package probe

// boundary finds when windows end: at the first look after a multiple of their length on
// REALTIME, so that all nodes' windows are of about one time, told as readings of RAW.
type boundary struct {
	window int64 // ns
	next   int64 // reading of RAW; 0 before the first pair of readings
}

// passed reports whether a window has ended, given readings of both clocks taken
// together.
func (b *boundary) passed(raw, realtime int64) bool {
	if b.next == 0 {
		b.next = raw + b.window - mod(realtime, b.window)
	}
	if raw < b.next {
		return false
	}
	end := b.next
	if raw-end >= b.window { // the node stood still: all that it missed is one window
		end = raw
	}
	// The multiple nearest to where the next window would end. Where REALTIME was
	// stepped, one window is shorter or longer, by half at most.
	due := end + b.window
	off := mod(realtime+(due-raw), b.window)
	if off > b.window/2 {
		off -= b.window
	}
	b.next = due - off
	return true
}

// mod is the remainder that is never negative.
func mod(a, n int64) int64 { return ((a % n) + n) % n }
