// SPDX-License-Identifier: Apache-2.0

// Package deliver gives data to the next component, again until the component takes
// them, refuses them for good, or time is up.
//
// The next component can be several branches: the collector gives each of them the
// data, and joins the errors of those that fail. Data are given to all branches or to
// none, so an error of several branches has these meanings:
//
//   - One branch fails, and says what it refused: only that is given again. The other
//     branches get it a second time. Ids derive from data, so that a duplicate changes
//     no result.
//   - Several branches fail: everything is given again as long as one of the errors is
//     retryable. What each branch refused is in its own error, and no part of the data
//     is right for all of them.
//   - Every error is permanent: nothing is given again, and what was refused counts as
//     not taken.
//
// What any branch refused never counts as taken. Where every branch that failed has used the data ([Analysed]), what
// came of them was refused, which these branches count.
package deliver

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Retry is how refused data are given again.
type Retry struct {
	Config configretry.BackOffConfig
	// Once gives data once, whatever the configuration has: the component stops.
	Once bool
	// Retried is called before each wait for a retry, with the refusal.
	Retried func(context.Context, error)
	// Whole builds all data anew for each attempt, where only a part was refused, too: the component finds
	// with [RefusedLogs] what was taken.
	Whole bool
	// Stop ends the wait for a retry, and leaves a call under way alone; nil: only the context does.
	Stop <-chan struct{}
}

// Traces gives the next component what build returns, n spans at first, and again what is refused for now. It
// returns how many spans the next component did not take. The next component owns what it is given, even
// if it refuses it, so each attempt builds its own.
func Traces(ctx context.Context, r Retry, next consumer.Traces, n int, build func() ptrace.Traces) (left int, err error) {
	s := tracesTo(next, nil)
	return deliver(ctx, r, n, build, &s)
}

// Logs is [Traces] for log records.
func Logs(ctx context.Context, r Retry, next consumer.Logs, n int, build func() plog.Logs) (left int, err error) {
	s := logsTo(next, nil)
	return deliver(ctx, r, n, build, &s)
}

// deliver gives what build returns, which stands for a number of items, and returns how many the next
// component did not take. The next component owns what it is given, even if it refuses it, so each
// attempt builds its own.
func deliver[T any](ctx context.Context, r Retry, items int, build func() T, s *signal[T]) (left int, err error) {
	delay := NewBackoff(&r.Config)
	begin := time.Now()
	for left = items; ; {
		data := build()
		given := s.count(data)
		err := s.consume(ctx, data)
		if err == nil {
			return 0, nil
		}
		f := failuresOf(err)
		if rest, ok := part(&f, s, given); ok {
			left = min(left, s.count(rest))
			if !r.Whole {
				build = func() T { return s.clone(rest) }
			}
		}
		if !r.Config.Enabled || r.Once || f.permanent {
			return left, fmt.Errorf("deliver %s: %w", s.name, err)
		}
		wait := delay.Next()
		if limit := r.Config.MaxElapsedTime; limit > 0 && time.Since(begin)+wait > limit {
			return left, fmt.Errorf("deliver %s: got refusals for %v; want at most %v (retry_on_failure::max_elapsed_time): %w",
				s.name, time.Since(begin).Round(time.Millisecond), limit, err)
		}
		r.Retried(ctx, err)
		select {
		case <-ctx.Done():
			return left, fmt.Errorf("deliver %s: stopped after: %w", s.name, err)
		case <-r.Stop:
			return left, fmt.Errorf("deliver %s: stopped after: %w", s.name, err)
		case <-time.After(wait):
		}
	}
}
