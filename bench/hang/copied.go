// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/lockstep-otel/lockstep/bench/hang/suite"
	"github.com/lockstep-otel/lockstep/internal/sim/hang"
)

// skews are within how long the dumps of one job are taken.
var skews = []time.Duration{2 * time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second}

// copied judges jobs that run, of whose dumps nothing says when they were taken, as of copies.
func copied(o *options, stdout io.Writer) error {
	fmt.Fprintln(stdout, "| taken within | jobs | told that they hang | findings | that name a rank | most confidence |")
	fmt.Fprintln(stdout, "| --- | --- | --- | --- | --- | --- |")
	for _, skew := range skews {
		s := o.Selection
		s.Families, s.Copied, s.Skew = []string{hang.Healthy}, true, skew
		var jobs, told, findings, names int
		sure := 0.0
		err := suite.Run(&s, suite.Engine, o.workers, func(c suite.Case) {
			jobs++
			findings += c.Outcome.Decided
			if c.Outcome.Decided > 0 {
				told++
			}
			for i := range c.Report.Roots {
				f := &c.Report.Roots[i].Finding
				sure = max(sure, f.Confidence)
				if len(f.Ranks) > 0 {
					names++
				}
			}
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "| %v | %d | %d | %d | %d | %.2f |\n", skew, jobs, told, findings, names, sure)
	}
	return nil
}
