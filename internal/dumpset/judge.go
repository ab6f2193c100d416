// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/rankstate"
)

// judge says what hangs in one incident of a job. Where stacks were recorded, those concerned are read
// again with them.
func (r *run) judge(g group, p part) {
	absent, taken := r.incident(g, p)
	h := Hang{Files: len(p.items), Incidents: p.of, Began: p.began, Times: p.times, SizeRefused: g.refused}
	h.Versions = versionsOf(taken, func(it *item) string { return it.version })
	h.Libs = versionsOf(taken, func(it *item) string { return it.light.LibVersion })
	for _, it := range taken {
		h.Entries += it.entries
		if it.light.OnlyActive {
			h.OnlyActive++
		}
		if it.light.Partial != "" {
			h.Partial++
		}
	}
	taken, copies, copied := r.whoseCopies(taken)
	absent = append(absent, copies...)
	job := desync.Job{Name: g.job, ID: g.job, Incarnation: incarnation(g.job, p.began)}
	if !g.guessed {
		job.WorldSize = model.Some(g.world)
	}
	d := doubt(taken)
	d.Hung = r.o.Hung
	if d.TimesLost != "" || d.Why != "" || d.Hung || d.Waited > 0 {
		d.Habit = r.habits(taken).of
	}
	written := byWatchdog(taken)
	for _, it := range taken {
		it.compared()
	}
	h.Report = r.conclude(job, absent, taken, d, written)
	if again := r.withStacks(h.Report, taken); len(again) > 0 {
		r.readAll(again, true)
		h.Report = r.conclude(job, absent, taken, d, written)
	}
	if nothingTold(&h, taken) {
		h.Verdict, h.Roots = desync.NoData, nil
	}
	if len(h.Versions) > 1 {
		h.Problems = append(h.Problems, fmt.Sprintf("the dumps are of %d versions: %v", len(h.Versions), h.Versions))
	}
	h.takeBack(copied, copied != "" && len(copies) == 0)
	r.out.Hangs = append(r.out.Hangs, h)
}

// nothingTold reports whether the dumps recorded no operation, and what their counts say is
// neither that all is over nor who is at fault: who records nothing may well stand still.
func nothingTold(h *Hang, taken []*item) bool {
	switch {
	case h.Entries > 0, h.Verdict == desync.Hang:
		return false
	case len(h.Roots) > 0:
		return true
	}
	return !slices.ContainsFunc(taken, func(it *item) bool { return it.tells })
}

// incident finds which dumps speak for their ranks, by the rules of the receiver, and why others do not.
func (r *run) incident(g group, p part) ([]model.Absence, []*item) {
	window := r.window(p.items)
	newest := newestOf(p.items)
	in := frwatch.NewIncidents(frwatch.IncidentConfig{
		Window: window, AllRanks: true, WorldSize: g.world, MaxRanks: frwatch.MaxRanks, MaxJobs: 1,
	})
	byPath := map[string]*item{}
	lone := map[int64]*item{}
	for _, it := range g.items {
		if it.alone != "" {
			lone[it.rank] = it
		}
	}
	for _, it := range p.items {
		if g.outside(it) {
			continue
		}
		byPath[it.path] = it
		d := frwatch.Dump{Job: g.job, Source: it.path, Rank: it.rank, Time: it.writtenOr(newest), State: it.light}
		if it.err != nil {
			d.State, d.Fault = nil, it.err.Error()
		}
		in.Add(newest, d)
	}
	var inc frwatch.Incident
	for _, i := range in.End(true) {
		inc = i
	}
	for _, refused := range slices.Concat(inc.Refused, in.TakeOverflow()) {
		r.out.Stats.Refused++
		r.problem(byPath[refused.Source], refused.What+"; the dump is left out")
	}
	p.elsewhere(inc.Absent, lone)
	var taken []*item
	for i := range inc.States {
		taken = append(taken, byPath[inc.States[i].Name])
	}
	return inc.Absent, taken
}

// incarnation tells the findings of two incidents of a job apart.
func incarnation(job string, began int64) string {
	launcher := []string{job}
	if began > 0 {
		launcher = append(launcher, strconv.FormatInt(began, 10))
	}
	return model.Incarnation(model.World{Launcher: launcher})
}

// conclude gives the analysis one state after the other. written reports whether a watchdog wrote the
// dumps, so that the times of their files are theirs.
func (r *run) conclude(job desync.Job, absent []model.Absence, taken []*item, doubt desync.Doubt, written bool) *desync.Report {
	a := desync.New(r.o.Engine)
	a.SetJob(job)
	var d rankstate.Decoder
	var s model.RankState // used again: nothing of it is kept
	for _, it := range taken {
		if err := d.DecodeTo(it.state, &s); err != nil {
			r.problem(it, fmt.Sprintf("keep state of dump: %v", err))
			continue
		}
		if written {
			s.Time = it.changed.UnixNano()
		}
		a.Add(&s)
	}
	for _, absence := range absent {
		a.AddAbsence(absence)
	}
	for _, dead := range r.o.Dead {
		if job.WorldSize.OK && dead.Rank < job.WorldSize.V && !slices.ContainsFunc(taken, func(it *item) bool { return it.rank == dead.Rank }) {
			a.AddAbsence(dead)
		}
	}
	a.SetDoubt(doubt)
	return a.Conclude(0)
}

// maxStacked bounds the dumps that are read again for their call stacks.
const maxStacked = 256

// withStacks returns the places of the dumps whose call stacks the report wants.
func (r *run) withStacks(rep *desync.Report, taken []*item) []int {
	want := map[int64]bool{}
	note := func(ranks ...int64) {
		for _, rank := range ranks {
			if len(want) < maxStacked {
				want[rank] = true
			}
		}
	}
	for i := range rep.Roots {
		root := &rep.Roots[i]
		note(root.Finding.Ranks...)
		note(root.Finding.Candidates...)
		for _, m := range root.Members {
			note(m.Rank)
		}
		for _, hop := range root.Path {
			note(hop.Rank)
		}
	}
	var out []int
	for i := range r.items {
		it := &r.items[i]
		if it.stacks && want[it.rank] && slices.Contains(taken, it) {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(x, y int) int { return cmp.Compare(r.items[x].rank, r.items[y].rank) })
	return out
}
