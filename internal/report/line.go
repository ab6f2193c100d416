// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Line returns a finding on one line: its time, status, severity and job, and the sentence.
func Line(f *model.Finding) string {
	text := f.Severity.String()
	if f.Status != "" {
		text = f.Status + " " + text
	}
	if f.Time > 0 {
		text = time.Unix(0, f.Time).UTC().Format("2006-01-02T15:04:05.000Z") + " " + text
	}
	if job := Job(f); job != "" {
		text += " job " + job
	}
	return Clean(text + ": " + Sentence(f))
}

// Update returns what a finding has become, on one line.
func Update(number int, f *model.Finding) string {
	verb := "is now"
	if f.Status == model.StatusClosed {
		verb = "closed"
	}
	return fmt.Sprintf("finding %d %s: %s", number, verb, Brief(f))
}

// Job returns the name of the finding's job, or its id; "" where neither is known.
func Job(f *model.Finding) string { return Clean(ShortName(cmp.Or(f.JobName, f.JobID))) }

// Time returns when a revision of a finding was made; "" where that is not known.
func Time(f *model.Finding) string {
	if f.Time <= 0 {
		return ""
	}
	return time.Unix(0, f.Time).UTC().Format(time.DateTime) + " UTC"
}
