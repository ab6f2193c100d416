// SPDX-License-Identifier: Apache-2.0

package stragglerconnector

import (
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/component/ledger"
	"github.com/lockstep-otel/lockstep/internal/otelmap/sequencemap"
	"github.com/lockstep-otel/lockstep/internal/sequence"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// joined is the extension that keeps which spans arrived. A nil one knows nothing.
type joined struct {
	of   ledger.Service
	left func()
}

func join(host component.Host, id component.ID) (*joined, error) {
	of, err := ledger.Find(host, id)
	if err != nil {
		return nil, err //nolint:wrapcheck // says what it is
	}
	return &joined{of, of.Join()}, nil
}

// begin notes that a step is about to be concluded, and returns what is missing of it.
func (j *joined) begin(id, incarnation string, step int64) straggler.Missing {
	v := j.of.Begin(sequence.Step{Job: id, Incarnation: incarnation, Step: step})
	return straggler.Missing{Why: v.Incomplete(), Spans: v.Lost}
}

// end returns a function that notes that steps were concluded; nil: there is nothing to note.
func (j *joined) end(reports []*straggler.StepReport) func() {
	if j == nil || len(reports) == 0 {
		return nil
	}
	steps := make([]sequence.Step, len(reports))
	for i, rep := range reports {
		steps[i] = sequence.Step{Job: rep.JobID, Incarnation: rep.Incarnation, Step: rep.Step}
	}
	return func() { j.of.End(steps) }
}

// losses returns an event for each run of steps that lost spans since the last call.
func (j *joined) losses(now time.Time) (out []hub.Record) {
	if j == nil {
		return nil
	}
	for _, of := range j.of.Losses() {
		out = append(out, hub.Record{
			Key:   "steps lost " + of.Job + " " + of.Incarnation + " " + of.Reason + " " + strconv.FormatInt(of.Step.Step, 10) + " " + now.Format(time.RFC3339Nano),
			Bytes: 256 + 2*(len(of.Job)+len(of.Incarnation)),
			Write: func(lr plog.LogRecord) { sequencemap.WriteLoss(&of, now, lr) },
		})
	}
	return out
}

// leave ends what join began.
func (j *joined) leave() {
	if j != nil {
		j.left()
	}
}
