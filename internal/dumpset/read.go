// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Read reads the files, each a dump or one that should be one, and says what hangs.
func Read(ctx context.Context, paths []string, o Options) *Result {
	o = o.withDefaults()
	items := make([]item, len(paths))
	for i, p := range paths {
		items[i].path = p
		items[i].rank, items[i].prefix, items[i].named = o.RankOf(p)
		items[i].byName = items[i].named
	}
	r := &run{o: o, ctx: ctx, items: items, cache: flightrecorder.NewCache(), out: &Result{}}
	all := make([]int, len(items))
	for i := range all {
		all[i] = i
	}
	r.readAll(all, false)
	r.spread()
	r.copies()
	r.count()
	for _, group := range r.jobs() {
		r.settle(&group)
		for _, p := range r.incidents(group) {
			r.judge(group, p)
		}
	}
	slices.SortStableFunc(r.out.Hangs, byWeight)
	slices.SortStableFunc(r.out.Problems, func(a, b model.Problem) int { return compareText(a.File, b.File) })
	return r.out
}

// weight is the order in which verdicts are told: what hangs first.
var weight = map[desync.Verdict]int{desync.Hang: 0, desync.Undecided: 1, desync.NoData: 2, desync.Healthy: 3}

// byWeight orders reports: the worst first, of those the one of most ranks, and the latest.
func byWeight(a, b Hang) int {
	return cmp.Or(cmp.Compare(weight[a.Verdict], weight[b.Verdict]), cmp.Compare(b.Ranks, a.Ranks), cmp.Compare(b.Began, a.Began))
}

// run is one reading.
type run struct {
	o     Options
	ctx   context.Context
	items []item
	cache *flightrecorder.Cache
	out   *Result
}

// readAll reads the items of these places, several at a time.
func (r *run) readAll(places []int, stacks bool) {
	next := make(chan int)
	var wait sync.WaitGroup
	var told sync.Mutex
	for range min(r.o.Workers, len(places)) {
		wait.Go(func() {
			for i := range next {
				it := &r.items[i]
				it.read(&r.o, r.cache, stacks)
				if !stacks {
					told.Lock()
					r.o.Progress(it.size)
					told.Unlock()
				}
			}
		})
	}
	for _, i := range places {
		if r.ctx.Err() != nil {
			r.items[i].err = r.ctx.Err()
			continue
		}
		next <- i
	}
	close(next)
	wait.Wait()
}

// spread gives each dump of a file that holds several an item of its own.
func (r *run) spread() {
	for i := range r.items[:len(r.items):len(r.items)] {
		r.items = append(r.items, r.items[i].more...)
		r.items[i].more = nil
	}
}

// maxProblems bounds the problems that are listed of one set.
const maxProblems = 10_000

func (r *run) problem(it *item, what string) {
	if len(r.out.Problems) >= maxProblems {
		r.out.ProblemsOmitted++
		return
	}
	p := model.Problem{File: it.path, Offset: -1, What: what}
	if it.named {
		rank := it.rank
		p.Rank = &rank
	}
	r.out.Problems = append(r.out.Problems, p)
}

// count counts what was read and tells what was wrong with single files.
func (r *run) count() {
	s := &r.out.Stats
	for i := range r.items {
		it := &r.items[i]
		s.Files++
		s.Bytes += it.size
		s.Entries += it.entries
		for _, p := range it.problems {
			r.problem(it, p)
		}
		switch {
		case it.copyOf != "":
			s.Copies++
			r.problem(it, "has the same content as "+it.copyOf+"; the copy is left out")
		case it.err != nil:
			s.Unreadable++
			r.problem(it, fmt.Sprintf("%v; the dump is left out", it.err))
		case it.light.Partial != "":
			s.Partial++
		}
	}
}
