// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// AppendMissing adds steps of a rank that are not delivered to ld, as log events under a
// resource of its own.
func AppendMissing(ld plog.Logs, r *model.Rank, missing []model.MissingSteps) {
	rl := ld.ResourceLogs().AppendEmpty()
	RankToResource(r, rl.Resource())
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(ScopeName)
	for i := range missing {
		m, lr := &missing[i], sl.LogRecords().AppendEmpty()
		lr.SetEventName(semconv.EventStepsMissing)
		lr.SetTimestamp(pcommon.Timestamp(m.Time))
		lr.SetObservedTimestamp(pcommon.Timestamp(m.Time))
		number, text := severity(model.SeverityWarn)
		lr.SetSeverityNumber(number)
		lr.SetSeverityText(text)
		lr.Body().SetStr(fmt.Sprintf("rank %d: steps %d to %d are missing: their records were overwritten before they were read", r.Rank, m.First, m.Last))
		a := lr.Attributes()
		a.EnsureCapacity(4)
		a.PutInt(semconv.StepsMissingFirst, m.First)
		a.PutInt(semconv.StepsMissingLast, m.Last)
		a.PutInt(semconv.StepsMissingRecords, m.Records)
		a.PutStr(semconv.StepsMissingReason, m.Reason)
	}
}
