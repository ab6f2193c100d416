// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestLine_AllKnown_HasTimeStatusSeverityAndJob(t *testing.T) {
	f := model.Finding{
		Time: time.Date(2026, 11, 23, 14, 3, 12, 250e6, time.UTC).UnixNano(), Status: model.StatusOpen, Severity: model.SeverityWarn,
		JobName: "dlrm", JobID: "4711", Kind: model.FindingStraggler, Class: model.ClassHost, Rank: model.Some(int64(7)), Confidence: 0.6,
	}
	assert.Equal(t, "2026-11-23T14:03:12.250Z open WARN job dlrm: rank 7: straggler (host) (confidence 0.60)", Line(&f))
	assert.Equal(t, "2026-11-23 14:03:12 UTC", Time(&f))
	f.JobName = ""
	assert.Equal(t, "4711", Job(&f))
}

func TestLine_LittleKnown_IsOneCleanLine(t *testing.T) {
	f := model.Finding{Kind: "a\nb", Op: "\x1b[2J", Host: "h\u202e"}
	assert.Equal(t, "INFO: host h?: a?b, at ?[2J (confidence 0.00)", Line(&f))
	assert.Empty(t, Time(&f))
	assert.Empty(t, Job(&f))
}

func TestUpdate(t *testing.T) {
	f := model.Finding{Kind: model.FindingStraggler, Class: model.ClassHost, Rank: model.Some(int64(7)), CostSeconds: model.Some(0.002), StepFirst: model.Some(int64(4))}
	assert.Equal(t, "finding 3 is now: rank 7, host, cost 2.00 ms per step; since step 4", Update(3, &f))
	f.Status = model.StatusClosed
	assert.Equal(t, "finding 3 closed: rank 7, host, cost 2.00 ms per step; since step 4", Update(3, &f))
}
