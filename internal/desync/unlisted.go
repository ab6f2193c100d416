// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"fmt"
	"slices"
	"strings"
)

// unlistedWhy is said of what could be decided if the size of the job were known.
const unlistedWhy = "neither the members nor how many ranks the job has is recorded"

// unlisted reports whether a communicator may have members of which nothing at all is known: no
// state lists them, and nobody says how many ranks there are. Of one without members the states
// are in another, which has the same name and a list.
func (w *world) unlisted(g *group) bool {
	return g.inferred && len(g.members) > 0 && !w.a.job.WorldSize.OK
}

// quiet is the verdict where what was seen does not hang, as seen says. The job may hang all the
// same: who holds others up has often nothing open itself, and may be what was not seen.
func (w *world) quiet(rep *Report, seen string, more ...string) {
	rep.Verdict = Healthy
	if why := append(w.unseenParts(), more...); len(why) > 0 {
		rep.Verdict, rep.MayRun = Undecided, seen+", but "+strings.Join(why, ", and ")
	}
}

// unseenParts says what of the job was not seen.
func (w *world) unseenParts() (why []string) {
	if n := len(w.absences()); n > 0 {
		why = append(why, fmt.Sprintf("of %d of %d ranks there is no state", n, len(w.ranks)))
	}
	if n := w.torn(); n > 0 {
		why = append(why, fmt.Sprintf("of %d of %d ranks the state is not whole", n, len(w.ranks)))
	}
	if slices.ContainsFunc(w.a.groups.all, w.unlisted) {
		why = append(why, unlistedWhy)
	}
	return why
}

// overwritten says of how many ranks operations are open by their counts that are not recorded, so that
// their age is not known.
func (w *world) overwritten() []string {
	n := 0
	for _, r := range w.ranks {
		if r.view != nil && r.view.partial == "" && (r.view.guesses() || r.view.hides()) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("of %d of %d ranks operations are counted as open that are not recorded", n, len(w.ranks))}
}

// torn is of how many ranks something is missing in the state.
func (w *world) torn() (n int) {
	for _, r := range w.ranks {
		if r.view != nil && r.view.partial != "" {
			n++
		}
	}
	return n
}
