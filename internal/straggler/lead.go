// SPDX-License-Identifier: Apache-2.0

package straggler

// Sources inside a communication library record collectives and nothing of what
// the device does between them. There host and device are told apart by the
// launch lead time: an operation that was launched and has not begun waits for
// work that was launched before it, so that from its launch on the device is
// busy, though nobody recorded with what. Until then the host had launched
// nothing that could still be told of.

// witnessed reports whether the source recorded what the device ran besides
// communication: idleness is idleness then.
func (rs *rankStep) witnessed() bool {
	for i := range rs.acts {
		if k := rs.acts[i].kind; k == actCompute || k == actCopy {
			return true
		}
	}
	return false
}

// cover extends the step to the end of its communication. A host that does not
// wait for its device marks the end of a step that the device has just begun, and one whose
// clock is early marks it while the device is at work.
func (rs *rankStep) cover() {
	for i := range rs.comms {
		op := &rs.comms[i]
		if rs.end = max(rs.end, op.start); !op.inferred {
			rs.end = max(rs.end, op.end)
		}
	}
}

// workBefore begins the key of work that was not recorded: all that is known of
// it is which operation had to wait for it.
const workBefore = "work before "

func (v *rankView) unrecorded(op *commOp) uint32 {
	name := op.form.collective
	if name == "" {
		name = string(op.form.kind)
	}
	return v.keys.id(workBefore+name, 0, v.stats)
}

// lead keeps of each launch the earliest of those that had not begun when it
// began: where several streams are in use, whichever was launched first tells
// since when the device had work. A launch that is not known says nothing.
func lead(launches []launched) {
	var first int64
	for i := len(launches) - 1; i >= 0; i-- {
		l := &launches[i]
		if l.launch != 0 && (first == 0 || l.launch < first) {
			first = l.launch
		}
		l.launch = first
	}
}

// launchOf returns when the operation was launched, 0 where that is unknown or
// stamped by another clock than its start.
func (v *rankView) launchOf(op *commOp) int64 {
	if op.clock != "" && op.clock != v.ownClock() {
		return 0
	}
	return op.launch
}
