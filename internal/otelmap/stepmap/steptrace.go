// SPDX-License-Identifier: Apache-2.0

package stepmap

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/straggler"
	"github.com/lockstep-otel/lockstep/internal/straggler/steptrace"
)

// TraceOf returns the step trace as spans below the step's root, annotated with the report and the
// open findings.
func TraceOf(rep *straggler.StepReport, findings []model.Finding, of steptrace.Trace) ptrace.Traces {
	td := ptrace.NewTraces()
	for i, ops := range of.Ops {
		if len(ops) > 0 {
			otelmap.AppendOps(td, &rep.Ranks[i].Rank, ops)
		}
	}
	otelmap.RootToTraces(&otelmap.Root{
		JobName: rep.JobName, JobID: rep.JobID, Incarnation: rep.Incarnation, Step: rep.Step, Start: rep.Start, End: rep.End,
		Omitted: of.Omitted, Limit: of.Limit, Incomplete: rep.Lacks.Why, Lost: rep.Lacks.Spans,
	}, td)
	Annotate(td, []*straggler.StepReport{rep}, findings, false)
	return td
}
