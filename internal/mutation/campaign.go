// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"sync"
)

// Campaign judges a sample of mutants.
type Campaign struct {
	Sampler *Sampler
	Judge   func(context.Context, Mutant) (Record, error)
	Jobs    int          // mutants judged at the same time
	Done    func(Record) // called for every verdict, one at a time
}

// Result is what a campaign came to.
type Result struct {
	Records  []Record // in the order of the sample
	Rejected int      // mutants that do not compile and were replaced
	Unjudged int      // mutants left when the context ended, or that the packages do not have
}

// Run judges n mutants, or fewer where ctx ends before or the packages have no more.
// Mutants that do not compile are replaced by the next of the sample.
func (c *Campaign) Run(ctx context.Context, n int) (Result, error) {
	result := Result{Unjudged: n}
	for result.Unjudged > 0 && ctx.Err() == nil {
		sample, rejected := c.Sampler.Sample(result.Unjudged)
		result.Rejected += rejected
		if len(sample) == 0 {
			break
		}
		records, err := c.judge(ctx, sample)
		if err != nil && ctx.Err() == nil {
			return result, err
		}
		for _, r := range records {
			switch r.Quick {
			case "": // not judged
			case NotCompiled:
				result.Rejected++
			default:
				result.Records = append(result.Records, r)
				result.Unjudged--
			}
		}
	}
	return result, nil
}

// judge returns the verdicts on sample, and empty ones where ctx ended before.
func (c *Campaign) judge(ctx context.Context, sample []Mutant) ([]Record, error) {
	records := make([]Record, len(sample))
	var done sync.Mutex
	err := parallel(ctx, c.Jobs, sample, func(ctx context.Context, i int, m Mutant) error {
		r, err := c.Judge(ctx, m)
		if err != nil {
			return err
		}
		records[i] = r
		done.Lock()
		defer done.Unlock()
		c.Done(r)
		return nil
	})
	return records, err
}

// parallel calls do for every item with its index, jobs at a time, until one returns an
// error or ctx is over, and returns the first error.
func parallel[T any](ctx context.Context, jobs int, items []T, do func(context.Context, int, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for i := range next {
				if err := do(ctx, i, items[i]); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range items {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}
