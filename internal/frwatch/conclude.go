// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// incident tells what has come of a job, and who is absent.
func (in *Incidents) incident(id string, j *job, expected []int64) Incident {
	for _, of := range j.waiting {
		for i := range of {
			in.bytes -= sizeOf(&of[i])
		}
	}
	c := conclusion{in: in, job: j, absent: map[int64]model.Absence{}}
	c.refuseStale()
	var picked []Dump
	for _, rank := range slices.Sorted(maps.Keys(j.waiting)) {
		if d, ok := c.pick(j.waiting[rank]); ok {
			picked = append(picked, d)
		}
	}
	picked = c.sameWorld(picked)
	out := Incident{Job: id, Began: c.began, Refused: c.refused}
	for _, d := range picked {
		if in.cfg.AllRanks && len(expected) > 0 && !d.State.Rank.WorldSize.OK {
			d.State.Rank.WorldSize = model.Some(int64(len(expected)))
		}
		out.States = append(out.States, *d.State)
		j.told[d.Rank] = d.Time
		delete(c.absent, d.Rank)
	}
	for _, r := range expected {
		c.expect(id, r)
	}
	for _, r := range slices.Sorted(maps.Keys(c.absent)) {
		out.Absent = append(out.Absent, c.absent[r])
	}
	clear(j.waiting)
	return out
}

type conclusion struct {
	in      *Incidents
	job     *job
	began   time.Time
	absent  map[int64]model.Absence
	refused []Refusal
}

func (c *conclusion) refuse(d *Dump, reason string, absence model.AbsenceReason, what string) {
	c.refused = append(c.refused, Refusal{Reason: reason, Source: d.Source, What: what, Rank: d.Rank})
	c.absent[d.Rank] = model.Absence{Rank: d.Rank, Reason: absence, Detail: d.Source + ": " + what}
}

// refuseStale drops what is of before the incident, and finds when that began.
func (c *conclusion) refuseStale() {
	newest := c.newest()
	c.began = newest
	for rank, of := range c.job.waiting {
		c.job.waiting[rank] = slices.DeleteFunc(of, func(d Dump) bool {
			age := newest.Sub(d.Time)
			if age < 0 {
				c.refuse(&d, RefusedStale, model.AbsentStale, fmt.Sprintf("find incident of dump: got one of %v after most others; want at most %v (window): its clock, or theirs, is wrong", (-age).Round(time.Second), c.in.cfg.Window))
				return true
			}
			if age <= c.in.cfg.Window {
				if d.Time.Before(c.began) {
					c.began = d.Time
				}
				return false
			}
			c.refuse(&d, RefusedStale, model.AbsentStale, fmt.Sprintf("find incident of dump: got one written %v before the newest; want at most %v (window)", age.Round(time.Second), c.in.cfg.Window))
			return true
		})
	}
}

// newest ends the window that has most ranks, of equal ones the latest: one clock that is
// wrong does not make all others of before.
func (c *conclusion) newest() time.Time {
	var times []time.Time
	for _, of := range c.job.waiting {
		for _, d := range of {
			times = append(times, d.Time)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	var newest time.Time
	most, from := 0, 0
	for i, t := range times {
		for t.Sub(times[from]) > c.in.cfg.Window {
			from++
		}
		if n := i - from + 1; n >= most {
			most, newest = n, t
		}
	}
	return newest
}

// pick returns the dump that speaks for its rank. Of two, the later counts where both are of
// one process; else neither is believed.
func (c *conclusion) pick(of []Dump) (Dump, bool) {
	read := slices.DeleteFunc(slices.Clone(of), func(d Dump) bool { return d.State == nil })
	if len(read) == 0 {
		for _, d := range of {
			c.absent[d.Rank] = model.Absence{Rank: d.Rank, Reason: cmp.Or(d.Absence, model.AbsentUnreadable), Detail: d.Source + ": " + d.Fault}
		}
		return Dump{}, false
	}
	latest := slices.MaxFunc(read, func(a, b Dump) int {
		return cmp.Or(cmp.Compare(a.State.LastEnqueue, b.State.LastEnqueue), a.Time.Compare(b.Time))
	})
	for i := range read {
		if o := &read[i]; o.Source != latest.Source && !sameProcess(o.State, latest.State) {
			what := fmt.Sprintf("tell dumps of rank %d apart: got %s, too, of another process", o.Rank, latest.Source)
			c.refuse(o, RefusedTwin, model.AbsentRefused, what)
			c.refuse(&latest, RefusedTwin, model.AbsentRefused, fmt.Sprintf("tell dumps of rank %d apart: got %s, too, of another process", o.Rank, o.Source))
			return Dump{}, false
		}
	}
	return latest, true
}

// sameProcess reports whether two states have an operation in common: its number and its
// stamp, to the nanosecond. Two processes do not.
func sameProcess(a, b *model.RankState) bool {
	type key struct {
		comm         string
		kind         model.OpKind
		seq, created int64
	}
	of := func(s *model.RankState, op *model.StateOp) key {
		k := key{kind: op.Kind, seq: op.Seq, created: op.Created}
		if op.Comm >= 0 && op.Comm < len(s.Comms) {
			k.comm = s.Comms[op.Comm].Comm.ID
		}
		return k
	}
	seen := map[key]bool{}
	for i := range a.Ops {
		seen[of(a, &a.Ops[i])] = true
	}
	for i := range b.Ops {
		if op := &b.Ops[i]; op.Created > 0 && seen[of(b, op)] {
			return true
		}
	}
	return len(a.Ops) == 0 || len(b.Ops) == 0 // who says nothing contradicts nobody
}

// worldGroup is how PyTorch describes the group of all ranks.
const worldGroup = "default_pg"

// sameWorld drops dumps of another world than that of most. Where two are named by equally
// many, nobody is believed.
func (c *conclusion) sameWorld(picked []Dump) []Dump {
	votes := map[string]int{}
	worlds := make([]string, len(picked))
	for i := range picked {
		worlds[i] = worldDigest(picked[i].State)
		if worlds[i] != "" {
			votes[worlds[i]]++
		}
	}
	if len(votes) < 2 {
		return picked
	}
	most, tie := "", false
	for w, n := range votes {
		switch {
		case n > votes[most]:
			most, tie = w, false
		case n == votes[most]:
			tie = true
		}
	}
	var out []Dump
	for i := range picked {
		if worlds[i] == "" || (worlds[i] == most && !tie) {
			out = append(out, picked[i])
			continue
		}
		c.refuse(&picked[i], RefusedOtherJob, model.AbsentRefused, fmt.Sprintf("find job of dump: got a world of other ranks than in %d of %d dumps", votes[most], len(picked)))
	}
	return out
}

func worldDigest(s *model.RankState) string {
	for i := range s.Comms {
		if m := &s.Comms[i]; m.Comm.Name == worldGroup && !m.MembersInferred && len(m.Members) > 0 {
			if m.Comm.Digest != "" {
				return m.Comm.Digest
			}
			return model.RanksDigest(m.Members)
		}
	}
	return ""
}

// expect finds out why there is no state of a rank.
func (c *conclusion) expect(id string, rank int64) {
	if _, known := c.absent[rank]; known {
		return
	}
	told, ok := c.job.told[rank]
	written, writing, has := c.in.cfg.Known(id, rank)
	ofNow := func(t time.Time) bool { return c.began.Sub(t) <= c.in.cfg.Window }
	if (ok && ofNow(told)) || (has && !writing && ofNow(written)) {
		return // it was told of already, as a state or as absent
	}
	a := model.Absence{Rank: rank, Reason: model.AbsentMissing, Detail: "no dump came"}
	switch {
	case has && writing:
		a.Reason, a.Detail = model.AbsentLate, "its dump is being written"
	case ok || has:
		if told.After(written) {
			written = told
		}
		a.Reason = model.AbsentStale
		a.Detail = fmt.Sprintf("its newest dump is of %s", written.UTC().Format(time.RFC3339))
	}
	c.absent[rank] = a
}
