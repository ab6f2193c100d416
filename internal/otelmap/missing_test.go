// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestAppendMissing_IsOneWarningARange(t *testing.T) {
	ld := plog.NewLogs()
	AppendMissing(ld, &model.Rank{JobID: "j", Rank: 3}, []model.MissingSteps{
		{First: 301, Last: 498, Records: 5000, Time: 7, Reason: model.MissingOverwritten}, {First: 600, Last: 600},
	})
	records := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	assert.Equal(t, 2, records.Len())
	lr := records.At(0)
	assert.Equal(t, []string{"lockstep.steps.missing", "rank 3: steps 301 to 498 are missing: their records were overwritten before they were read"},
		[]string{lr.EventName(), lr.Body().Str()})
	assert.Equal(t, plog.SeverityNumberWarn, lr.SeverityNumber())
	assert.Equal(t, map[string]any{
		"lockstep.steps.missing.first": int64(301), "lockstep.steps.missing.last": int64(498),
		"lockstep.steps.missing.records": int64(5000), "lockstep.steps.missing.reason": "overwritten",
	}, lr.Attributes().AsRaw())
	rank, known := ResourceToRank(ld.ResourceLogs().At(0).Resource(), &Problems{})
	assert.True(t, known)
	assert.Equal(t, int64(3), rank.Rank)
}
