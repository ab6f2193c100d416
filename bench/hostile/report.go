// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// minute is how many samples of memory a minute has.
const minute = 60

// growth is the slope of memory over the last half, MiB a minute.
func (r *result) growth() trend {
	return trendOf(r.rss[len(r.rss)/2:]).per(minute, mebibyte)
}

// mebibytes is the memory at a sample.
func (r *result) mebibytes(sample int) float64 {
	if len(r.rss) == 0 {
		return 0
	}
	return r.rss[min(sample, len(r.rss)-1)] / mebibyte
}

// check reports what must not be.
func (r *result) check(floor float64) error {
	var errs []error
	switch g := r.growth(); {
	case !g.ok:
		errs = append(errs, fmt.Errorf("check memory under %s: %w", r.kind, errShort))
	case g.rises(floor):
		errs = append(errs, fmt.Errorf("check memory under %s: got a slope of %v MiB a minute; want at most %g, or noise", r.kind, g, floor))
	}
	for _, v := range r.verdicts {
		if v.found != right {
			errs = append(errs, fmt.Errorf("check findings under %s: got %s of job %s; want its fault alone", r.kind, v.found, v.job))
		}
	}
	if r.metricsFault != nil {
		errs = append(errs, fmt.Errorf("scrape metrics under %s: %w", r.kind, r.metricsFault))
	}
	return errors.Join(errs...)
}

func printTable(w io.Writer, results []*result) {
	t := tabwriter.NewWriter(w, 12, 0, 2, ' ', 0)
	fmt.Fprintln(t, "kind\tconfiguration\tmessages/s\tMB/s\tnot taken\tRSS 1 min, MiB\tRSS end, MiB\tslope, MiB/min\trefused items\tjob metrics, kB\town metrics, kB\tjobs that behave")
	for _, r := range results {
		var found []string
		for _, v := range r.verdicts {
			found = append(found, strings.TrimPrefix(v.job, jobPrefix)+" "+v.found)
		}
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.1f\t%d\t%.0f\t%.0f\t%v\t%.0f\t%d\t%d\t%s\n",
			r.kind, strings.TrimSuffix(r.config, ".yaml"), float64(r.sent)/r.seconds, float64(r.bytes)/r.seconds/1e6, r.failed,
			r.mebibytes(minute), r.mebibytes(len(r.rss)), r.growth(), r.refused, r.job/1000, r.own/1000, strings.Join(found, ", "))
	}
	_ = t.Flush()
}
