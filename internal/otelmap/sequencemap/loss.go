// SPDX-License-Identifier: Apache-2.0

package sequencemap

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/semconv"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// WriteLoss writes a loss as the log event lockstep.steps.lost.
func WriteLoss(of *sequence.Loss, now time.Time, lr plog.LogRecord) {
	lr.SetEventName(semconv.EventStepsLost)
	lr.SetTimestamp(pcommon.NewTimestampFromTime(now))
	lr.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	lr.SetSeverityNumber(plog.SeverityNumberWarn)
	lr.SetSeverityText("WARN")
	lr.Body().SetStr(sentence(of))
	a := lr.Attributes()
	a.EnsureCapacity(6)
	a.PutStr(semconv.JobID, of.Job)
	a.PutStr(semconv.JobIncarnation, of.Incarnation)
	if of.Reason != sequence.ReasonGap {
		a.PutInt(semconv.StepsLostFirst, of.Step.Step)
		a.PutInt(semconv.StepsLostLast, of.Last)
	}
	a.PutInt(semconv.StepsLostSpans, of.Spans)
	a.PutStr(semconv.StepsLostReason, of.Reason)
}

func sentence(of *sequence.Loss) string {
	switch of.Reason {
	case sequence.ReasonGap:
		return fmt.Sprintf("job %s: %d spans did not arrive, though later ones of the same agent did", of.Job, of.Spans)
	case sequence.ReasonUncertain:
		return fmt.Sprintf("job %s: the gateway ended while it sent step traces of %s: their %d spans are lost unless the traces are there",
			of.Job, runOf(of), of.Spans)
	default:
		return fmt.Sprintf("job %s: %d spans of %s were lost when the gateway ended", of.Job, of.Spans, runOf(of))
	}
}

func runOf(of *sequence.Loss) string {
	if of.Step.Step == of.Last {
		return fmt.Sprintf("step %d", of.Last)
	}
	return fmt.Sprintf("steps %d to %d", of.Step.Step, of.Last)
}
