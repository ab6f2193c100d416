// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/lockstep-otel/lockstep/internal/faulty"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
)

// batch is what a sender sends at one moment.
type batch struct {
	traces ptrace.Traces
	logs   plog.Logs
}

func newBatch() batch { return batch{ptrace.NewTraces(), plog.NewLogs()} }

func (b batch) add(other batch) {
	other.traces.ResourceSpans().MoveAndAppendTo(b.traces.ResourceSpans())
	other.logs.ResourceLogs().MoveAndAppendTo(b.logs.ResourceLogs())
}

// feed returns the telemetry of a moment, n periods of package faulty after begin. Job distinguishes jobs.
type feed func(job string, begin time.Time, n int64) batch

// fault returns the telemetry of some faults, which are removed from a moment on.
func fault(removed int64, names ...string) feed {
	return func(job string, begin time.Time, n int64) batch {
		all := newBatch()
		for _, f := range faulty.Faults() {
			for _, name := range names {
				if f.Name == name {
					m := f.Write(job+name, begin, n, removed)
					all.add(batch{m.Traces, m.Logs})
				}
			}
		}
		return all
	}
}

// both returns the telemetry of two feeds.
func both(a, b feed) feed {
	return func(job string, begin time.Time, n int64) batch {
		all := a(job, begin, n)
		all.add(b(job, begin, n))
		return all
	}
}

// slowSaves are the saves of a job, a new one every four moments. Each is complete two moments after it began.
func slowSaves(job string, begin time.Time, n int64) batch {
	b := newBatch()
	rl := b.logs.ResourceLogs().AppendEmpty()
	epochmap.JobToResource(job+"saves", job+"saves", rl.Resource())
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	save := 10 * (1 + n/4)
	for rank := range int64(2) {
		o := model.EpochObservation{
			Time: begin.Add(time.Duration(n) * faulty.Period).UnixNano(), JobID: job + "saves", Generation: "2 ranks", Save: save,
			Domain: model.Domain{Kind: model.DomainModel, ID: fmt.Sprint("rank ", rank)}, State: model.DomainCommitted, Epoch: model.Some(save),
			Observer: fmt.Sprint("node", rank), Revision: n, Confidence: 1,
		}
		if rank == 1 && n%4 < 2 {
			o.State, o.Epoch = model.DomainTentative, model.Optional[int64]{}
		}
		epochmap.ObservationToLog(&o, records.AppendEmpty())
	}
	return b
}

// found are findings of an analysis: a new one at each moment, which is updated two moments later and closed four
// moments later.
func found(job string, begin time.Time, n int64) batch {
	var all []model.Finding
	for revision, status := range []string{model.StatusOpen, model.StatusUpdated, model.StatusClosed} {
		of := n - 2*int64(revision)
		if of < 0 || of >= findings {
			continue
		}
		at := begin.Add(time.Duration(n) * faulty.Period).UnixNano()
		all = append(all, model.Finding{
			ID: fmt.Sprint(job, "finding ", of), Revision: int64(revision) + 1, Status: status, Kind: model.FindingStraggler, Class: model.ClassHost,
			JobID: job + "job", Incarnation: "life", Start: begin.UnixNano(), Time: at, Rank: model.Some(of), Severity: model.SeverityWarn,
		})
	}
	return batch{ptrace.NewTraces(), otelmap.FindingsToLogs(all)}
}

// findings is how many found makes.
const findings = 12
