// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
)

// past is what a dump records of one rank's collectives, by time. It is made of a few dumps only,
// and only where their history decides.
type past struct {
	calls    []call
	order    []int32         // places in calls, by group and number
	last     map[int32]int64 // greatest number of each group
	waits    bool            // now, for the rank in question
	blocking bool            // its host stays in each call until that is over
}

// callKey is one collective over all ranks.
type callKey struct {
	group int32
	seq   int64
}

func (k callKey) compare(o callKey) int {
	return cmp.Or(cmp.Compare(k.group, o.group), cmp.Compare(k.seq, o.seq))
}

type call struct {
	callKey
	at, out int64 // Unix ns at which the host called it, and by which it was over; out 0: unknown
	what    int32 // its group, name and sizes: a place of the program
	thread  int32
	meets   bool // nobody leaves it before all have entered it
}

// names numbers the groups, places and threads of several dumps.
type names map[string]int32

func (n names) of(name string) int32 {
	id, ok := n[name]
	if !ok {
		id = int32(len(n))
		n[name] = id
	}
	return id
}

func pastOf(d *flightrecorder.Dump, n names) *past {
	p := &past{last: map[int32]int64{}, blocking: true}
	members := map[flightrecorder.Tag]string{}
	for i := range d.Groups {
		members[d.Groups[i].Tag] = d.Groups[i].Digest()
	}
	groups, open := map[flightrecorder.Tag]string{}, 0
	p.calls = make([]call, 0, len(d.Entries))
	for i := range d.Entries {
		e := &d.Entries[i]
		if e.IsP2P || e.Coll < 0 || e.Created <= 0 {
			continue
		}
		tag := d.Tag(e)
		group, ok := groups[tag]
		if !ok {
			group = tag.Name + "\x00" + tag.Desc + "\x00" + members[tag]
			groups[tag] = group
		}
		name, gloo := strings.CutPrefix(d.Name(e), "gloo:")
		over := e.EndSeen > 0 || e.State == flightrecorder.Completed || gloo && e.Retired
		if !over {
			open++
		}
		in, _ := d.Sizes(e)
		_, thread := d.Thread(e)
		c := call{
			callKey: callKey{n.of(group), e.Coll}, at: e.Created,
			what: n.of(group + " " + name + " " + in.Text), thread: n.of(thread), meets: meets(name),
		}
		if over && c.meets {
			c.out = e.EndSeen
		}
		p.blocking = p.blocking && gloo
		p.calls = append(p.calls, c)
	}
	p.blocking = p.blocking && open <= 1
	slices.SortStableFunc(p.calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	p.index()
	return p
}

// meets reports whether none can leave a collective before all have entered it.
func meets(name string) bool {
	return strings.Contains(name, "all_reduce") || strings.Contains(name, "all_gather") || strings.Contains(name, "reduce_scatter") || name == "barrier"
}

// index drops what is recorded twice, as members of one launch are, and orders the others by number.
func (p *past) index() {
	seen := make(map[callKey]bool, len(p.calls))
	p.calls = slices.DeleteFunc(p.calls, func(c call) bool {
		twice := seen[c.callKey]
		seen[c.callKey] = true
		return twice
	})
	p.order = make([]int32, len(p.calls))
	for i := range p.calls {
		c := &p.calls[i]
		p.order[i], p.last[c.group] = int32(i), max(p.last[c.group], c.seq)
	}
	slices.SortFunc(p.order, func(i, j int32) int { return p.calls[i].compare(p.calls[j].callKey) })
	if !p.blocking {
		return
	}
	next := map[int32]int64{} // by thread
	for i := range slices.Backward(p.calls) {
		c := &p.calls[i]
		if c.out == 0 && c.meets {
			c.out = next[c.thread]
		}
		next[c.thread] = c.at
	}
}

// shift moves all stamps.
func (p *past) shift(by int64) {
	for i := range p.calls {
		p.calls[i].at += by
		if p.calls[i].out != 0 {
			p.calls[i].out += by
		}
	}
}

// never is later than every stamp.
const never = math.MaxInt64

// joint says when the last of several ranks came to each collective.
type joint struct {
	last  map[callKey]int64
	reach map[int32]int64 // up to which number all that have a part in a group have come
}

// join looks at the collectives of all. A rank that has recorded nothing of a group has no part in
// it; what is older than its buffer it has come to.
func join(all []*past) joint {
	most := 0
	for _, p := range all {
		most = max(most, len(p.calls))
	}
	j := joint{last: make(map[callKey]int64, most), reach: map[int32]int64{}}
	for _, p := range all {
		for i := range p.calls {
			c := &p.calls[i]
			j.last[c.callKey] = max(j.last[c.callKey], c.at)
		}
		for group, last := range p.last {
			if reach, ok := j.reach[group]; !ok || last < reach {
				j.reach[group] = last
			}
		}
	}
	return j
}

// joined is when the last came to a collective; never where one has not yet.
func (j *joint) joined(k callKey) int64 {
	if k.seq > j.reach[k.group] {
		return never
	}
	return j.last[k]
}

// depth is how many calls a rank has made from the first on that some of the others have not
// come to, 0 where there is none: hosts that do not wait for their devices run ahead of them while a job runs, too.
func (p *past) depth(j *joint) int {
	for i := range p.calls {
		if j.joined(p.calls[i].callKey) == never {
			return len(p.calls) - i
		}
	}
	return 0
}

// blocked adds when a rank had made so many calls from one on that
// another had not come to.
func (p *past) blocked(edges []edge, j *joint, own bool, depth int, from, until int64) []edge {
	begin, end := int64(0), int64(0)
	add := func() {
		if b, e := max(begin, from), min(end, until); b < e {
			edges = append(edges, edge{b, 1, own}, edge{e, -1, own})
		}
	}
	for i := range p.calls {
		if i+depth > len(p.calls) {
			break
		}
		at, over := p.calls[i+depth-1].at, j.joined(p.calls[i].callKey)
		switch {
		case over <= at:
		case at <= end: // times rise, so that intervals join where they meet
			end = max(end, over)
		default:
			add()
			begin, end = at, over
		}
	}
	add()
	return edges
}

// newestAt is the place of the newest call at a time; -1: there was none.
func (p *past) newestAt(at int64) int {
	return sort.Search(len(p.calls), func(i int) bool { return p.calls[i].at > at }) - 1
}
