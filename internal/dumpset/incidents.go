// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// sameIncident is how far apart dumps of one incident are written: the ranks look for the
// order to dump every second, and those that symbolise call stacks take up to 15 s, twice
// where it is tried again without them. The rest is for clocks.
const sameIncident = time.Minute

// writtenBy bounds when a dump was written, as far as it tells that. Who waits longer than
// its operation's timeout is given up, so that it was no later than the first of those has
// run out. Nor was it later than its file was changed: who copies files makes that later, not
// earlier.
func (it *item) writtenBy(s *model.RankState) (until int64) {
	for i := range s.Ops {
		o := &s.Ops[i]
		if o.Done || o.Created <= 0 || o.Timeout.Or(0) <= 0 {
			continue
		}
		end := o.Created + int64(o.Timeout.V*float64(time.Second))
		if end < s.LastEnqueue { // it ran out, and nobody was given up
			until = 0
			break
		}
		if until == 0 || end < until {
			until = end
		}
	}
	if at := it.changed.UnixNano(); at >= s.LastEnqueue && (until == 0 || at < until) {
		until = at
	}
	if until == 0 {
		return 0
	}
	return until + int64(sameIncident)
}

// newest is when the newest operation of a dump was enqueued, Unix ns; 0 where it says none.
func (it *item) newest() int64 {
	if it.light == nil {
		return 0
	}
	return it.light.LastEnqueue
}

// part is what is told of as one incident.
type part struct {
	items []*item
	// others are the dumps of other incidents, by rank.
	others map[int64]*item
	began  int64  // newest operation of those that stopped first; 0 where the job has one incident
	of     int    // incidents of the job
	times  string // what its dumps do not tell of when they were written
}

// incidents divides the dumps of a job by when they were written. Two parts are apart where
// most of the earlier dumps were over, for certain, before the first operation that is the
// newest of a later one. What says nothing is taken for one of the last.
func (r *run) incidents(g group) []part {
	var timed, untimed []*item
	for _, it := range g.items {
		if it.newest() > 0 {
			timed = append(timed, it)
		} else {
			untimed = append(untimed, it)
		}
	}
	slices.SortStableFunc(timed, func(a, b *item) int { return cmp.Compare(a.newest(), b.newest()) })
	var found [][]*item
	for from, i := 0, 1; i <= len(timed); i++ {
		if i == len(timed) || (timed[i].newest()-timed[i-1].newest() > int64(sameIncident) && overBefore(timed[from:i], timed[i].newest())) {
			found = append(found, timed[from:i:i])
			from = i
		}
	}
	several := len(found) > 1
	found = r.dropLone(found)
	untimed = r.byFiles(untimed, found)
	out := make([]part, max(len(found), 1))
	for i, items := range found {
		out[i] = part{items: items, of: len(found), times: timesText(items), others: map[int64]*item{}}
		if len(found) > 1 {
			out[i].began = items[0].newest()
		}
		for k, other := range found {
			if k != i {
				for _, it := range other {
					out[i].others[it.rank] = it
				}
			}
		}
	}
	last := &out[len(out)-1]
	if several {
		last.times = strings.TrimSpace(last.times + " " + untimedText(untimed))
	}
	last.items = append(slices.Clone(last.items), untimed...)
	return out
}

// overBefore reports whether most of the dumps that tell by when they were written were
// before that time.
func overBefore(items []*item, at int64) bool {
	before, after := 0, 0
	for _, it := range items {
		switch {
		case it.until == 0:
		case it.until < at:
			before++
		default:
			after++
		}
	}
	return before > after
}

// dropLone leaves out single dumps of another time than the others': one that nobody has
// overwritten, or whose host has another time. They stay what their rank is known by, as
// stale.
func (r *run) dropLone(found [][]*item) [][]*item {
	if len(found) < 2 {
		return found
	}
	most := found[len(found)-1]
	for _, items := range slices.Backward(found) {
		if len(items) > len(most) {
			most = items
		}
	}
	return slices.DeleteFunc(found, func(items []*item) bool {
		it := items[0]
		if len(items) > 1 || it == most[0] {
			return false
		}
		it.alone = apartText(it.newest(), most)
		r.out.Stats.Refused++
		r.problem(it, it.alone+"; the dump is left out")
		return true
	})
}

// byFiles finds the incident of each dump without times, by when their files were last changed:
// before anybody called what an incident stopped in, they are of an earlier one. It returns those that
// can be of the last.
func (r *run) byFiles(untimed []*item, found [][]*item) (rest []*item) {
	if len(found) == 0 || !keepTimes(found) {
		return untimed
	}
	for _, it := range untimed {
		k := len(found) - 1
		for it.light != nil && it.until > 0 && k >= 0 && it.until < found[k][0].newest() {
			k--
		}
		switch {
		case k == len(found)-1:
			rest = append(rest, it)
		case k >= 0:
			found[k] = append(found[k], it)
		default:
			before := time.Duration(found[0][0].newest() - it.changed.UnixNano()).Round(time.Second)
			it.alone = fmt.Sprintf("find incident of dump: its file was last changed %v before operations of the others", before)
			r.out.Stats.Refused++
			r.problem(it, it.alone+"; the dump is left out")
		}
	}
	return rest
}

// keepTimes reports whether no file is older than what is in its dump, as those are that lost their times.
func keepTimes(found [][]*item) bool {
	for _, items := range found {
		for _, it := range items {
			if _, known := it.quiet(); !known {
				return false
			}
		}
	}
	return true
}

func apartText(newest int64, most []*item) string {
	if before := most[0].newest() - newest; before > 0 {
		return fmt.Sprintf("find incident of dump: got one written at least %v before operations of the others", time.Duration(before).Round(time.Second))
	}
	after := newest - most[len(most)-1].newest()
	return fmt.Sprintf("find incident of dump: got one of %v after the others were written: it is of another incident, or a clock is wrong", time.Duration(after).Round(time.Second))
}

// timesText says where the newest operations of dumps are far apart, and nothing tells
// whether they were written together.
func timesText(items []*item) string {
	at, widest := 0, int64(sameIncident)
	for i := 1; i < len(items); i++ {
		if gap := items[i].newest() - items[i-1].newest(); gap > widest {
			at, widest = i, gap
		}
	}
	if at == 0 {
		return ""
	}
	few, word := items[:at], "before"
	if len(few) > len(items)-at {
		few, word = items[at:], "after"
	}
	ranks := map[int64]bool{}
	for _, it := range few {
		ranks[it.rank] = true
	}
	who, whose := ranksText(ranks), "its dump is"
	if len(ranks) > 1 {
		whose = "their dumps are"
	}
	return fmt.Sprintf("The newest operation of %s is %v %s those of the others; that %s of the same incident is not certain.",
		who, time.Duration(widest).Round(time.Second), word, whose)
}

// untimedText says whose dumps tell no time at all; those that could not be read are told of
// elsewhere. Empty: there are none.
func untimedText(items []*item) string {
	ranks := map[int64]bool{}
	for _, it := range items {
		if it.light != nil {
			ranks[it.rank] = true
		}
	}
	switch len(ranks) {
	case 0:
		return ""
	case 1:
		return "The dump of " + ranksText(ranks) + " tells no time; that it is of the same incident is not certain."
	}
	return "The dumps of " + ranksText(ranks) + " tell no time; that they are of the same incident is not certain."
}

func ranksText(ranks map[int64]bool) string {
	spans, listed := model.Spans(slices.Sorted(maps.Keys(ranks)), maxSpans)
	who := "rank "
	if len(ranks) > 1 {
		who = "ranks "
	}
	who += strings.Join(spans, ", ")
	if rest := len(ranks) - listed; rest > 0 {
		who += fmt.Sprintf(" and %d more", rest)
	}
	return who
}

// maxSpans bounds the spans of ranks in a sentence.
const maxSpans = 8

// elsewhere says of ranks that are absent that their dump is of another incident.
func (p *part) elsewhere(absent []model.Absence, lone map[int64]*item) {
	for i := range absent {
		a := &absent[i]
		if a.Reason != model.AbsentMissing {
			continue
		}
		if it := lone[a.Rank]; it != nil {
			a.Reason, a.Detail = model.AbsentStale, it.path+": "+it.alone
			continue
		}
		it := p.others[a.Rank]
		switch {
		case it == nil:
		case it.newest() < p.began:
			a.Reason, a.Detail = model.AbsentStale, it.path+": of an earlier incident"
		default:
			a.Detail = it.path + ": of a later incident"
		}
	}
}
