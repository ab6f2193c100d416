// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// hangClasses are what each fault must be found as.
var hangClasses = []struct{ fault, class string }{
	{"hang", "not_scheduled"},
	{"exit", "process_dead"},
	{"mismatch", "mismatch_size"},
}

// hangFrom is the first step with the fault; each step has so many collectives, the first of
// which nobody leaves.
const (
	hangFrom    = 60
	reducesEach = 3
)

// withinLimit is how soon after the stall limit a hang must be told of.
const withinLimit = 5 * time.Second

// hangs makes the demo's job hang in every way, and prints how often the first finding of kind
// desync was right and how late. It fails where it was not always.
func hangs(ctx context.Context, f *flag.FlagSet, args []string, w io.Writer) error {
	bin := f.String("bin", "bin", "folder of lockstep, the worker and the plugin")
	runs := f.Int("runs", 10, "runs of each fault")
	if err := f.Parse(args); err != nil {
		return err
	}
	failed := 0
	op := "all_reduce " + strconv.Itoa(hangFrom*reducesEach)
	fmt.Fprintf(w, "4 ranks, the fault from step %d on; right: rank, class and operation %q, within %v of the stall limit.\n"+
		"Times in s, median (most): since the last step of the job, and of that beyond the limit.\n\n", hangFrom, op, withinLimit)
	fmt.Fprintf(w, "%-10s %-10s %-16s %-20s %-20s\n", "fault", "right", "stall limit", "told after", "beyond the limit")
	for _, e := range hangClasses {
		var limits, still, beyond []float64
		var wrong []string
		for i := range *runs {
			rank := int64(i % 4)
			lines, err := demo(ctx, *bin, "--fault", e.fault, "--rank", strconv.FormatInt(rank, 10), "--fault-from", strconv.Itoa(hangFrom), "--once")
			if err != nil {
				return err
			}
			l := firstHang(lines)
			if l == nil {
				wrong = append(wrong, fmt.Sprintf("rank %d: nothing found", rank))
				continue
			}
			limits, still, beyond = append(limits, l.Limit), append(still, l.Still), append(beyond, l.Still-l.Limit)
			if why := l.wrongHang(rank, e.class, op); why != "" {
				wrong = append(wrong, why)
			}
		}
		failed += len(wrong)
		fmt.Fprintf(w, "%-10s %-10s %-16s %-20s %-20s\n", e.fault, fmt.Sprintf("%d of %d", *runs-len(wrong), *runs), spread(limits), spread(still), spread(beyond))
		for _, why := range wrong {
			fmt.Fprintf(w, "  wrong: %s\n", why)
		}
	}
	if failed > 0 {
		return fmt.Errorf("judge runs: got %d wrong; want none", failed)
	}
	return nil
}

func spread(values []float64) string {
	return fmt.Sprintf("%.1f (%.1f)", quantile(values, 0.5), quantile(values, 1))
}

// firstHang is the first finding of kind desync, nil where there is none.
func firstHang(lines []said) *said {
	at := slices.IndexFunc(lines, func(l said) bool { return l.Finding == "desync" })
	if at < 0 {
		return nil
	}
	return &lines[at]
}

func (l *said) wrongHang(rank int64, class, op string) string {
	late := time.Duration((l.Still - l.Limit) * float64(time.Second))
	switch {
	case l.Rank == nil || *l.Rank != rank || l.Class != class:
		return fmt.Sprintf("got rank %d, class %s; want rank %d, %s", deref(l.Rank), l.Class, rank, class)
	case l.Op != op:
		return fmt.Sprintf("rank %d: got operation %q; want %q", rank, l.Op, op)
	case l.Limit <= 0:
		return fmt.Sprintf("rank %d: told without a limit", rank)
	case late > withinLimit:
		return fmt.Sprintf("rank %d: told %.1f s after the limit of %.1f s; want %v", rank, late.Seconds(), l.Limit, withinLimit)
	}
	return ""
}
