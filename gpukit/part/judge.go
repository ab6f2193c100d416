// SPDX-License-Identifier: Apache-2.0

package part

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
)

// judge adds a check: failed where there are problems, else right.
func judge(p *report.Part, right report.Status, name string, problems []string, text string, figures ...report.Figure) {
	if len(problems) > 0 {
		p.Add(name, report.Failed, few(problems, maxProblems), figures...)
		return
	}
	p.Add(name, right, text, figures...)
}

// broken adds a check for a program that did not come to its end: not shown where the
// time of the part was over, which is no fault of the program; else failed.
func broken(p *report.Part, name string, err error) {
	if errors.Is(err, kit.ErrNoTime) {
		p.Addf(name, report.NotShown, "not run: %v", kit.ErrNoTime)
		return
	}
	p.Add(name, report.Failed, err.Error())
}

// reserve is what a job must leave of the part's time.
const reserve = 3 * time.Second

// room reports whether a job that takes so long may begin, and adds a check where not.
func room(ctx context.Context, p *report.Part, name string, least time.Duration) bool {
	if left(ctx, least) {
		return true
	}
	p.Addf(name, report.NotShown, "not run: no time left of the part's; it needs %v", least)
	return false
}

// left reports whether the part's time has room for a job.
func left(ctx context.Context, least time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(deadline) > least+reserve)
}

// maxProblems bounds how many problems a text names.
const maxProblems = 3

// few joins the first texts, and counts the others.
func few(texts []string, most int) string {
	if len(texts) <= most {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(texts[:most], "; "), len(texts)-most)
}
