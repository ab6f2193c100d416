// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
)

// maxRanksAtOnce bounds the memory: jobs of so many ranks together run side by side,
// the largest beside smaller ones.
const maxRanksAtOnce = 24576

// runAll runs the tasks on so many workers, the largest first, and hands on what comes
// of each; the order of results is that of tasks.
func runAll(ctx context.Context, tasks []*task, selected []methods.About, workers int, done func(*task)) ([]outcome, error) {
	order := slices.Clone(tasks)
	slices.SortStableFunc(order, func(a, b *task) int { return cmp.Compare(b.Ranks*b.Steps, a.Ranks*a.Steps) })
	results := map[*task][]outcome{}
	room := newRoom(maxRanksAtOnce)
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	next := make(chan *task)
	for range workers {
		wg.Go(func() {
			for t := range next {
				need := room.take(t.Ranks)
				out, err := t.run(selected)
				room.give(need)
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
				}
				results[t] = out
				done(t)
				mu.Unlock()
			}
		})
	}
	for _, t := range order {
		mu.Lock()
		stop := failed != nil
		mu.Unlock()
		if stop || ctx.Err() != nil {
			break
		}
		next <- t
	}
	close(next)
	wg.Wait()
	if failed == nil {
		failed = ctx.Err()
	}
	var out []outcome
	for _, t := range tasks {
		out = append(out, results[t]...)
	}
	return out, failed
}

// room is a semaphore of ranks.
type room struct {
	mu   sync.Mutex
	free *sync.Cond
	left int
	size int
}

func newRoom(size int) *room {
	r := &room{left: size, size: size}
	r.free = sync.NewCond(&r.mu)
	return r
}

// take waits for room; a job that is larger than all of it takes all.
func (r *room) take(ranks int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	ranks = min(ranks, r.size)
	for r.left < ranks {
		r.free.Wait()
	}
	r.left -= ranks
	return ranks
}

func (r *room) give(ranks int) {
	r.mu.Lock()
	r.left += ranks
	r.mu.Unlock()
	r.free.Broadcast()
}
