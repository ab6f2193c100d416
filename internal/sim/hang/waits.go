// SPDX-License-Identifier: Apache-2.0

package hang

import (
	"fmt"
	"slices"
)

// waits returns for whom a rank's device waits: members that have not come to what is at the
// head of one of its streams. It is what is physically so, whatever was recorded.
func (x *run) waits(id int) []int {
	r := &x.ranks[id]
	var out []int
	for s := range r.streams {
		st := &r.streams[s]
		if st.head == len(st.list) || !st.list[st.head].begun {
			continue
		}
		q := &st.list[st.head]
		in := &r.program[q.instr]
		if in.do == post {
			out = append(out, x.awaited(r, int(q.instr))...)
			continue
		}
		g := x.places[id][in.kind].group
		c := x.instances[g][q.seq]
		for m, at := range c.instr {
			if at < 0 && (in.name != "broadcast" || m == in.root) {
				out = append(out, int(x.groups[g].ranks[m]))
			}
		}
	}
	return out
}

// awaited returns the other sides of messages that have not come.
func (x *run) awaited(r *rank, i int) (out []int) {
	in := &r.program[i]
	g := x.places[r.id][in.kind].group
	for _, m := range in.msgs {
		other := x.peer(r.id, i, m)
		ch := channel{g, int32(r.id), int32(other)}
		if !m.send {
			ch.src, ch.dst = ch.dst, ch.src
		}
		box := x.channels[ch]
		mine, theirs := box.sends, box.recvs
		if !m.send {
			mine, theirs = theirs, mine
		}
		at := slices.IndexFunc(mine, func(l letter) bool { return int(l.instr) == i })
		if at >= len(theirs) {
			out = append(out, other)
		}
	}
	return out
}

// reach returns all that a rank waits for, itself only where it waits for itself through
// others.
func (x *run) reach(id int) map[int]bool {
	seen := map[int]bool{}
	todo := x.waits(id)
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[r] {
			seen[r] = true
			todo = append(todo, x.waits(r)...)
		}
	}
	return seen
}

// circle returns the ranks that wait for a rank while it waits for them, with itself; nil
// where there are none.
func (x *run) circle(id int) (out []int64) {
	reached := x.reach(id)
	if !reached[id] {
		return nil
	}
	for r := range x.ranks {
		if reached[r] && x.reach(r)[id] {
			out = append(out, int64(r))
		}
	}
	return out
}

// hung tells whether a rank has something open.
func (x *run) hung(id int) bool {
	r := &x.ranks[id]
	for i := range r.host {
		if do := r.program[i].do; (do == call || do == post) && r.done[i] == never {
			return true
		}
	}
	return false
}

// tookHold says why a job does not show its fault.
func (j *Job) tookHold(family string) error {
	if family == Healthy {
		for r := range j.ranks {
			if j.ranks[r].device < len(j.ranks[r].program) {
				return fmt.Errorf("rank %d of a healthy job stopped at instruction %d of %d", r, j.ranks[r].device, len(j.ranks[r].program))
			}
		}
		return nil
	}
	if !slices.ContainsFunc(j.ranks, func(r rank) bool { return j.hung(r.id) }) {
		return fmt.Errorf("%w: nothing hangs", ErrNoPlace)
	}
	for _, h := range j.hits {
		if !j.shows(h) {
			return fmt.Errorf("%w: rank %d never came to its fault", ErrNoPlace, h.rank)
		}
	}
	return nil
}

func (j *Job) shows(h *hit) bool {
	r := &j.ranks[h.rank]
	switch h.what {
	case stopHost:
		// Else it is stuck, but who waits does not wait for that.
		return r.host == h.instr && !j.hung(h.rank) && j.awaitedBySome(h.rank)
	case stopDevice:
		return r.frozen && j.awaitedBySome(h.rank)
	case silenceDevice:
		return r.device == h.instr && len(j.waits(h.rank)) == 0 && j.awaitedBySome(h.rank)
	case stallMessage:
		return j.meets(h)
	}
	switch h.family {
	case StalledOp, Network, UnevenSplit, WrongOp, WrongSize, WrongSizeShort, WrongDType, WrongRoot:
		w := h.where(j.grid, r.program)
		c := j.instances[w.group][w.seq]
		return c != nil && c.came == len(j.groups[w.group].ranks)
	case WrongMessage:
		return j.meets(h)
	}
	return true
}

// awaitedBySome tells whether another rank waits for one.
func (j *Job) awaitedBySome(id int) bool {
	return slices.ContainsFunc(j.ranks, func(r rank) bool { return slices.Contains(j.waits(r.id), id) })
}

// meets tells whether both sides of a message have come.
func (j *Job) meets(h *hit) bool {
	r := &j.ranks[h.rank]
	begun := slices.ContainsFunc(r.streams, func(st stream) bool {
		return st.head < len(st.list) && st.list[st.head].begun && int(st.list[st.head].instr) == h.instr
	})
	return begun && len(j.awaited(r, h.instr)) == 0
}

func (j *Job) makeTruth(family string) Truth {
	t := Truth{Family: family}
	blamed := map[int64]bool{}
	for _, h := range j.hits {
		f := j.fault(h)
		if n := len(t.Faults); family == WrongOpTwo && n == 1 {
			t.Faults[0].Ranks = append(t.Faults[0].Ranks, f.Ranks...)
		} else {
			t.Faults = append(t.Faults, f)
		}
		for _, r := range f.Ranks {
			blamed[r] = true
		}
		switch family {
		case ProcessDead:
			t.Dead = append(t.Dead, int64(h.rank))
		case NoDump:
			t.Silent = append(t.Silent, int64(h.rank))
		}
	}
	for r := range j.ranks {
		if !blamed[int64(r)] && family != Healthy {
			t.Victims = append(t.Victims, int64(r))
		}
	}
	return t
}

// scopes are what hosts get stuck in, as lockstep_scope names it.
var scopes = []string{"data_loading", "garbage_collection", "checkpoint_save", "compile", "forward"}

func (j *Job) fault(h *hit) Fault {
	f := Fault{Family: h.family, Ranks: []int64{int64(h.rank)}, Op: h.op}
	if h.what == stopHost {
		f.Scope = scopes[h.instr%len(scopes)]
	}
	switch h.family {
	case DeviceSilent, StalledOp, StalledMessage, Network, UnevenSplit, WrongRoot, WrongMessage:
		// What dumps hold is the same whoever is at fault.
		f.Blameless = true
	}
	f.Concerned = append(f.Concerned, int64(h.rank))
	f.Concerned = append(f.Concerned, h.others...)
	if h.op.Seq > 0 {
		for _, g := range j.groups {
			if g.name == h.op.Group {
				f.Concerned = append(f.Concerned, g.ranks...)
			}
		}
	}
	if h.family == DeviceSilent {
		f.Concerned = j.headMembers(h.rank)
	}
	if c := j.circle(h.rank); c != nil {
		f.Cycle = true
		f.Concerned = append(f.Concerned, c...)
	}
	slices.Sort(f.Concerned)
	f.Concerned = slices.Compact(f.Concerned)
	return f
}

// headMembers are those of all groups in which others wait for a rank that never begins.
func (j *Job) headMembers(id int) (out []int64) {
	for k := range kinds {
		if p := j.places[id][k]; p.group >= 0 {
			for r := range j.ranks {
				if slices.Contains(j.waits(r), id) && slices.Contains(j.groups[p.group].ranks, int64(r)) {
					out = append(out, int64(r))
				}
			}
		}
	}
	return append(out, int64(id))
}

// Truth returns what is wrong.
func (j *Job) Truth() Truth { return j.truth }

// Open returns what a rank had enqueued and what was not seen to be over at a time of its clock
// whose error of some milliseconds is far from any end: one entry for each message. Gloo's
// messages are not recorded, and are left out.
func (j *Job) Open(id int, at int64) (out []OpRef) {
	r := &j.ranks[id]
	for i := range r.host {
		in := &r.program[i]
		if in.do != call && (in.do != post || j.Gloo) || r.created[i] > at || r.done[i] <= at && r.done[i] <= r.blind {
			continue
		}
		o := j.opRef(id, r.program, i)
		if in.do == call {
			out = append(out, o)
		}
		for _, m := range in.msgs {
			o.Name = "recv"
			if m.send {
				o.Name = "send"
			}
			out = append(out, o)
		}
	}
	return out
}

// Root returns which member a rank takes for the root of a collective of a group, as a
// recorder inside the process would have it; false where it has none.
func (j *Job) Root(id int, group string, seq int64) (int64, bool) {
	r := &j.ranks[id]
	for k := range kinds {
		if p := j.places[id][k]; p.group < 0 || j.groups[p.group].name != group {
			continue
		}
		n := int64(0)
		for i := range r.program {
			if in := &r.program[i]; in.do == call && in.kind == k {
				if n++; n == seq {
					return int64(in.root), in.root >= 0
				}
			}
		}
	}
	return 0, false
}
