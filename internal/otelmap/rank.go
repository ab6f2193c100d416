// SPDX-License-Identifier: Apache-2.0

package otelmap

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

var rankFields = newTable(
	str(semconv.ServiceName, func(r *model.Rank) *string { return &r.JobName }),
	str(semconv.HostName, func(r *model.Rank) *string { return &r.HostName }),
	str(semconv.HostID, func(r *model.Rank) *string { return &r.HostID }),
	str(semconv.JobID, func(r *model.Rank) *string { return &r.JobID }),
	str(semconv.JobIncarnation, func(r *model.Rank) *string { return &r.Incarnation }),
	num(semconv.Rank, func(r *model.Rank) *int64 { return &r.Rank }),
	optInt(semconv.LocalRank, func(r *model.Rank) *optionalInt { return &r.LocalRank }),
	optInt(semconv.WorldSize, func(r *model.Rank) *optionalInt { return &r.WorldSize }),
	optInt(semconv.ParallelDP, func(r *model.Rank) *optionalInt { return &r.Parallel.DP }),
	optInt(semconv.ParallelPP, func(r *model.Rank) *optionalInt { return &r.Parallel.PP }),
	optInt(semconv.ParallelTP, func(r *model.Rank) *optionalInt { return &r.Parallel.TP }),
	optInt(semconv.ParallelCP, func(r *model.Rank) *optionalInt { return &r.Parallel.CP }),
	optInt(semconv.ParallelEP, func(r *model.Rank) *optionalInt { return &r.Parallel.EP }),
	str(semconv.HWID, func(r *model.Rank) *string { return &r.HWID }),
	optInt(semconv.ProcessPID, func(r *model.Rank) *optionalInt { return &r.PID }),
	str(semconv.ClockID, func(r *model.Rank) *string { return &r.ClockID }),
	optInt(semconv.ClockEpoch, func(r *model.Rank) *optionalInt { return &r.ClockEpoch }),
)

// RankToResource writes a rank's identity as resource attributes.
func RankToResource(r *model.Rank, res pcommon.Resource) {
	m := res.Attributes()
	m.EnsureCapacity(len(rankFields.fields) + 2)
	rankFields.write(r, m)
	m.PutStr(semconv.ServiceInstanceID, r.JobID+"/"+r.Incarnation+"/"+strconv.FormatInt(r.Rank, 10))
	if r.HWID != "" {
		m.PutStr(semconv.HWType, semconv.HWTypeGPU)
	}
}

// ResourceToRank reads a rank's identity; false where the resource names no rank.
func ResourceToRank(res pcommon.Resource, p *Problems) (model.Rank, bool) {
	r, f := readRank(res, p)
	return r, f == nil
}

func readRank(res pcommon.Resource, p *Problems) (r model.Rank, f *fault) {
	m := res.Attributes()
	rank, f := rankOf(m)
	if f == nil {
		rankFields.read(&r, m, p.notes(&rank))
	}
	// A source that knows no incarnation still knows its job: two jobs must not
	// become one because both are silent.
	if r.Incarnation == "" && r.JobID != "" {
		r.Incarnation = model.Incarnation(model.World{Launcher: []string{r.JobID}})
	}
	return r, f
}

// jobResource writes what findings and step roots have of a resource: the job.
func jobResource(name, id, incarnation string, res pcommon.Resource) {
	job := model.Rank{JobName: name, JobID: id, Incarnation: incarnation}
	rankFields.write(&job, res.Attributes())
	res.Attributes().Remove(semconv.Rank)
}
