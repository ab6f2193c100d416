// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/epochmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/versionmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// heartbeat is how many periods lie between two reports of a state.
const heartbeat = 2

// saving is a job whose save 20 holds in one part what save 10 held.
func saving(m *Moment) {
	if !m.each(heartbeat) {
		return
	}
	rl := m.Logs.ResourceLogs().AppendEmpty()
	epochmap.JobToResource(m.job, m.job, rl.Resource())
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for _, save := range []int64{10, 20} {
		for rank := range int64(2) {
			o := model.EpochObservation{
				Time: m.at.UnixNano(), JobID: m.job, Generation: "2 ranks", Save: save, Domain: model.Domain{Kind: model.DomainModel, ID: fmt.Sprint("rank ", rank)},
				State: model.DomainCommitted, Epoch: model.Some(save), Observer: fmt.Sprintf("%s-node%d", m.job, rank), Revision: save, Confidence: 1,
			}
			switch {
			case save == 20 && m.right():
				o.Revision++
			case save == 20 && rank == 1:
				o.Epoch = model.Some(int64(10))
			}
			epochmap.ObservationToLog(&o, records.AppendEmpty())
		}
	}
}

// resuming is a job whose rank 5 has loaded another step than the others. All load once more to remove it.
func resuming(m *Moment) {
	if !m.each(heartbeat) {
		return
	}
	for rank := range int64(ranks) {
		v := model.Resume{Rank: rankOf(m.job, rank), Time: m.at.UnixNano(), Life: fmt.Sprint("process ", rank), Number: 1, Step: 1200}
		switch {
		case m.right():
			v.Number = 2
		case rank == faultyRank:
			v.Step = 1100
		}
		resumemap.Append(m.Logs, &v)
	}
}

// hashing is a job whose rank 5 holds other parameters than its replicas.
func hashing(m *Moment) {
	if !m.each(heartbeat) {
		return
	}
	for rank := range int64(ranks) {
		r := rankOf(m.job, rank)
		v := model.Fingerprint{
			Rank: r, Time: m.at.UnixNano(), Life: fmt.Sprint("process ", rank), Step: 100 + 10*m.n, Hash: 0x5eed, Total: 4096, Group: "dp", Replicas: ranks,
		}
		if rank == faultyRank && !m.right() {
			v.Hash = 0xbad
		}
		resumemap.AppendFingerprints(m.Logs, &r, []model.Fingerprint{v})
	}
}

// mixing is a job whose rank 5 is on a node with a newer driver than the others.
func mixing(m *Moment) {
	if !m.each(heartbeat) {
		return
	}
	var members []int64
	for rank := range int64(ranks) {
		members = append(members, rank)
	}
	for rank := range int64(ranks) {
		r := rankOf(m.job, rank)
		driver := "550.90.07"
		if rank == faultyRank && !m.right() {
			driver = "580.126.09"
		}
		rl := m.Logs.ResourceLogs().AppendEmpty()
		versionmap.NodeToResource(r.HostName, r.HostID, rl.Resource())
		versionmap.VersionToLog(&model.VersionObservation{
			Time: m.at.UnixNano(), Domain: model.VersionKernelDriver, Version: driver, Units: 1, Of: 1, Life: 1, Revision: m.n + 1,
		}, rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
		otelmap.AppendRankState(m.Logs, &model.RankState{
			Rank: r, Source: model.StateRankEvents, Process: model.ProcessRunning, Time: m.at.UnixNano(),
			Comms: []model.CommState{{Comm: model.Comm{ID: "0xfeed", Name: "world"}, Backend: "nccl", Members: members}},
		})
	}
}

// logging is a job that logs that its checkpoint tags differ.
func logging(m *Moment) {
	if !m.each(heartbeat) || m.right() {
		return
	}
	rl := m.Logs.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr(semconv.JobID, m.job)
	rl.Resource().Attributes().PutStr(semconv.ServiceName, m.job)
	rl.Resource().Attributes().PutStr(semconv.HostName, m.job+"-node5")
	lr := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	lr.SetTimestamp(pcommon.NewTimestampFromTime(m.at))
	lr.SetSeverityNumber(plog.SeverityNumberWarn)
	lr.Body().SetStr("[rank=5] The checkpoint tag name 'step100-r5' is not consistent across all ranks. Including rank unique information in checkpoint tag could cause issues when restoring with different world sizes.")
}
