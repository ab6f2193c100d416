// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// fleeting takes back what a job that runs shows, too, for a moment, where it may run.
func (w *world) fleeting(found, open []root) (kept, undecided []root) {
	all := cmp.Or(w.mayRun(), w.manyLate(found))
	open = w.withoutUsual(open)
	if len(open) > 0 {
		w.ran = cmp.Or(all, w.openTimesLost(open))
	}
	found = w.withoutPauses(w.withoutRunning(found, all))
	for _, r := range found {
		why := all
		if why == "" && r.class == model.ClassCompletionLag && w.apart() && !w.holdsUp(&r) {
			why = "nobody waits for it, and none says that it has stood for a minute: its state may be older than the others"
		}
		if why == "" && w.weak(&r) {
			why = w.timesLost()
		}
		if why == "" || !slices.Contains(momentary, r.class) && !w.passingCircle(&r) {
			kept = append(kept, r)
			continue
		}
		if r.candidates = r.ranks; len(r.ranks) == 0 {
			r.candidates = holdersOf(r.node, false)
		}
		r.class, r.ranks, r.sides = model.ClassIncompleteEvidence, nil, false
		r.notes, w.ran = append(r.notes, why), why
		open = append(open, r)
	}
	return kept, open
}

// even is where a root is as likely not to be one.
const even = 0.5

// weak reports whether nothing can show that the job stood still, and a root is what one that
// runs shows at most moments: all in an operation, or somebody not yet in one, who may be in what is
// not recorded.
func (w *world) weak(r *root) bool {
	return w.timesLost() != "" && !w.a.doubt.Hung && !r.weighed && (r.class == model.ClassStalledOp || w.sure(r) < even)
}

// passingCircle reports whether a circle is what a job that runs shows for a moment: one of messages, of
// which a send may end before it is received, where nothing can show that the job stood still.
func (w *world) passingCircle(r *root) bool {
	return r.class == model.ClassOrderCycle && w.weak(r) && slices.ContainsFunc(r.cycle, func(v int32) bool {
		return !w.isRank(v) && w.nodeAt(v).message
	})
}

// decided joins why nothing is decided, and what would decide it.
func (w *world) decided(why, all string) string {
	parts := append([]string{all, why}, w.decidedBy()...)
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// timesLost says why nothing can show that the job stood still; empty where something does.
func (w *world) timesLost() string {
	if w.timed() || w.stood.atLeast >= w.a.cfg.StallAfter {
		return ""
	}
	return w.a.doubt.TimesLost
}

// manyDevices is how many devices do not fail at once: a published hang has two that did.
const manyDevices = 3

// manyLate says why the job may run where nothing shows when its states were taken and the devices
// of several ranks seem to be late: so look the states of a job that runs, which are not of one
// instant, while devices fail alone or by twos.
func (w *world) manyLate(found []root) string {
	late := 0
	for i := range found {
		if found[i].class == model.ClassCompletionLag {
			late += len(found[i].ranks)
		}
	}
	if late < manyDevices || w.timed() || w.stood.atLeast >= w.a.cfg.StallAfter {
		return ""
	}
	return fmt.Sprintf("the devices of %d ranks seem to be late, and no state says when it was taken: a job that runs looks the same", late)
}

// holdsUp reports whether somebody else has something open.
func (w *world) holdsUp(r *root) bool {
	for i := range w.ranks {
		if len(w.heads[i]) > 0 && !slices.Contains(r.ranks, int32(i)) {
			return true
		}
	}
	return false
}

// mayRun says why the job may run; empty where it does not. What stands still holds most ranks
// soon, while in a job that ends the others are done, and one state is a little older than
// theirs: that something has stood for longer than states of one incident are apart excludes it.
func (w *world) mayRun() string {
	switch d := &w.a.doubt; {
	case d.Why != "" && (!d.Hung || w.movedOrFailed != "") && max(w.stood.longest, w.stood.atLeast) < d.Until:
		return d.Why
	case w.apart() && w.mostlyDone():
		return "most ranks have nothing open, and none says that it has stood for a minute: the job may have gone on"
	}
	return ""
}

// apart reports whether what is open may be over in the states of others, since these were taken
// later: dumps are, while recorders tell what is so now.
func (w *world) apart() bool {
	return max(w.stood.longest, w.stood.atLeast) < sameIncident && slices.ContainsFunc(w.ranks, func(r *rank) bool {
		return r.view != nil && r.view.source == model.StateFlightRecorder && (len(r.view.open) > 0 || r.view.hides())
	})
}

// mostlyDone reports whether most ranks that were seen have nothing open.
func (w *world) mostlyDone() bool {
	seen, waiting := 0, 0
	for i, r := range w.ranks {
		if r.view == nil {
			continue
		}
		seen++
		if len(w.heads[i]) > 0 || r.view.hides() {
			waiting++
		}
	}
	return 2*waiting < seen
}
