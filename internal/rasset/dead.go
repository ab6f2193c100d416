// SPDX-License-Identifier: Apache-2.0

package rasset

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ras"
)

// lastDead is the newest answer in text that lists dead processes; nil where there is none, or a later
// whole one does not list any.
func lastDead(answers []Answer) (last *Answer) {
	for i := range answers {
		a := &answers[i]
		if (len(a.Status.Dead) > 0 || a.Status.Whole()) && (last == nil || a.at > last.at) {
			last = a
		}
	}
	if last != nil && len(last.Status.Dead) == 0 {
		return nil
	}
	return last
}

// deadText says of a process that RAS considers it dead.
func (a *Answer) deadText(p *ras.Process) string {
	return fmt.Sprintf("NCCL's RAS considers %s dead (asked at %s)", p.Text(), filepath.Base(a.Path))
}

// deadAlone reports on dead processes where no answer lists a communicator, so that their ranks are not
// known; nil where there are none. A table that has all members of all communicators lacks none of them.
func (o *Options) deadAlone(answers []Answer) *desync.Report {
	last := lastDead(answers)
	if last == nil || !last.Status.Nothing && last.Status.Flagged == "" {
		return nil
	}
	dead := last.Status.Dead
	a := o.analyzer(&ras.Job{Name: o.name(answers), ID: o.name(answers), Unnumbered: true})
	for i := range dead {
		a.AddAbsence(model.Absence{Rank: int64(i), Reason: model.AbsentDead, Detail: last.deadText(&dead[i]), Time: last.at})
	}
	rep := a.Conclude(0)
	rep.Absent = nil
	for i := range rep.Roots {
		f := &rep.Roots[i].Finding
		f.Time = max(f.Time, last.at)
		if !slices.ContainsFunc(dead, func(p ras.Process) bool { return p.Host != dead[0].Host }) {
			f.Host = dead[0].Host
		}
	}
	return rep
}

// sayDead mentions dead processes that are in no finding.
func sayDead(h *dumpset.Hang, answers []Answer) {
	last := lastDead(answers)
	if last == nil || slices.ContainsFunc(h.Roots, func(r desync.Root) bool { return r.Finding.Class == model.ClassProcessDead }) {
		return
	}
	for i := range last.Status.Dead[:min(len(last.Status.Dead), maxRemarks)] {
		h.Remarks = append(h.Remarks, last.deadText(&last.Status.Dead[i])+".")
	}
}
