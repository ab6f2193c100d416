// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"time"

	"github.com/lockstep-otel/lockstep/bench/scoreboard/methods"
)

// grow runs one method alone on jobs of growing size, and prints what it took.
func grow(w io.Writer, jobs []*task, about *methods.About) error {
	var rows [][]string
	for _, t := range jobs {
		row, err := t.grow(about)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		table(w, about.Name+": growth", []string{"layout", "ranks", "steps", "ops/rank-step", "CPU s", "CPU ns/op", "ms/step, worst close", "bytes held/rank", "named"}, rows,
			"CPU: of the method alone, garbage collection with it, the simulator without. Held is what the method keeps after the last step, by the heap before and after it is let go.")
	}
	return nil
}

func (t *task) grow(about *methods.About) ([]string, error) {
	job, err := t.open()
	if err != nil {
		return nil, fmt.Errorf("simulate %d ranks: %w", t.Ranks, err)
	}
	ranks := job.Ranks()
	m := about.New()
	m.Begin(ranks)
	var used, worst time.Duration
	ops, steps := 0, 0
	for {
		step, ok := job.Next()
		if !ok {
			break
		}
		steps++
		for r := range ranks {
			seen := step.Ops(r)
			if seen == nil {
				continue
			}
			ops += len(seen)
			start, before := time.Now(), processorTime()
			m.Add(r, seen)
			used += processorTime() - before
			if r == len(ranks)-1 { // the last one closes the step
				worst = max(worst, time.Since(start))
			}
		}
		before := processorTime()
		m.Close(step.N)
		used += processorTime() - before
	}
	before := processorTime()
	named := m.End()
	used += processorTime() - before
	decided := 0
	for i := range named {
		decided += count(named[i].Decided)
	}
	with := heap()
	runtime.KeepAlive(m) // until here
	held := float64(with) - float64(heap())
	runtime.KeepAlive(job)
	return []string{
		t.Layout, strconv.Itoa(len(ranks)), strconv.Itoa(steps), fmt.Sprintf("%.0f", float64(ops)/float64(max(1, steps*len(ranks)))),
		fmt.Sprintf("%.2f", used.Seconds()), fmt.Sprintf("%.0f", float64(used.Nanoseconds())/float64(max(1, ops))),
		fmt.Sprintf("%.1f", worst.Seconds()*1e3), fmt.Sprintf("%.0f", max(0, held)/float64(len(ranks))), strconv.Itoa(decided),
	}, nil
}

// heap returns the bytes that are in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
