// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/otelmap/versionmap"
)

// fleetOf has nodes tell of their drivers, and a job's ranks, one on each, of their communicator,
// every five minutes for so long.
func (r *rig) fleetOf(t *testing.T, d time.Duration, drivers ...string) {
	t.Helper()
	members := make([]int64, len(drivers))
	for i := range members {
		members[i] = int64(i)
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		r.revision++
		ld := plog.NewLogs()
		for i, v := range drivers {
			host := fmt.Sprint("node", i)
			rl := ld.ResourceLogs().AppendEmpty()
			versionmap.NodeToResource(host, "id-"+host, rl.Resource())
			versionmap.VersionToLog(&model.VersionObservation{
				Time: time.Now().UnixNano(), Domain: model.VersionKernelDriver, Version: v, Units: 1, Of: 1, Life: 1, Revision: r.revision,
			}, rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
			otelmap.AppendRankState(ld, &model.RankState{
				Rank:   model.Rank{JobName: "llama", JobID: "job", Incarnation: "life", Rank: int64(i), HostName: host, HostID: "id-" + host},
				Source: model.StateRankEvents, Process: model.ProcessRunning, Time: time.Now().UnixNano(),
				Comms: []model.CommState{{Comm: model.Comm{ID: "0xabc", Name: "world"}, Backend: "nccl", Members: members}},
			})
		}
		r.send(t, ld)
		r.pass(t, 5*time.Minute)
	}
}

// point is the value of a gauge's only series.
func (r *rig) point(t *testing.T, name string, attributes map[string]any) float64 {
	t.Helper()
	all := r.metrics.AllMetrics()
	for _, m := range all[len(all)-1].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		for _, dp := range m.Gauge().DataPoints().All() {
			if m.Name() == name && assert.ObjectsAreEqual(attributes, dp.Attributes().AsRaw()) {
				return dp.DoubleValue()
			}
		}
	}
	return -1
}

func (r *rig) gauge(t *testing.T, name string) int64 {
	t.Helper()
	m, err := r.telemetry.GetMetric("otelcol_connector_epoch_" + name)
	require.NoError(t, err)
	return m.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
}

func TestVersionsOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.fleetOf(t, 15*time.Minute, "550.90.07", "550.90.07", "580.126.09")
		assert.Empty(t, r.said(t))
		r.fleetOf(t, 10*time.Minute, "550.90.07", "550.90.07", "580.126.09")
		const mixed = "communicator world of job job: epoch (fleet_mixed): nvidia_kernel_driver is 550.90.07 on 2 ranks of 2 nodes, and 580.126.09 on 1 rank of 1 node (the first node2); known of 3 of 3 ranks (confidence 1.00)"
		assert.Equal(t, []string{"open: " + mixed}, r.said(t))
		f, ok := otelmap.LogToFinding(r.logs.AllLogs()[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0), nil)
		require.True(t, ok)
		assert.Equal(t, []any{"epoch", "fleet_mixed", "nvidia_kernel_driver", "life", "0xabc", "node2", model.Some[int64](2), []int64{2}, model.SeverityWarn},
			[]any{f.Kind, f.Class, f.Op, f.Incarnation, f.CommID, f.Host, f.Rank, f.Ranks, f.Severity})
		assert.InDelta(t, 1, r.point(t, "lockstep.fleet.mixed", map[string]any{"lockstep.job.id": "job", "lockstep.version.domain": "nvidia_kernel_driver"}), 0)
		assert.InDelta(t, 2, r.point(t, "lockstep.fleet.nodes", map[string]any{"lockstep.version.domain": "nvidia_kernel_driver", "lockstep.version.value": "550.90.07"}), 0)

		r.fleetOf(t, 5*time.Minute, "580.126.09", "580.126.09", "580.126.09")
		assert.Equal(t, []string{"open: " + mixed, "closed: " + mixed}, r.said(t))
		assert.InDelta(t, 3, r.point(t, "lockstep.fleet.nodes", map[string]any{"lockstep.version.domain": "nvidia_kernel_driver", "lockstep.version.value": "580.126.09"}), 0)
		assert.EqualValues(t, 18, r.counter(t, "fleet_versions"))
		assert.EqualValues(t, 18, r.counter(t, "fleet_states"))
		assert.Zero(t, r.counter(t, "foreign_records"))
		assert.Zero(t, r.counter(t, "unread"))
		assert.EqualValues(t, 1, r.counter(t, "findings_opened"))
		assert.Zero(t, r.gauge(t, "fleet_abstained"))
		r.stop(t)
	})
}

// What nodes tell of NCCL is counted, and accuses nobody.
func TestNCCLOfNodesIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		for range 12 {
			ld := plog.NewLogs()
			for i, v := range []string{"2.27.5", "2.28.7", "2.28.7"} {
				host := fmt.Sprint("node", i)
				rl := ld.ResourceLogs().AppendEmpty()
				versionmap.NodeToResource(host, "id-"+host, rl.Resource())
				versionmap.VersionToLog(&model.VersionObservation{
					Time: time.Now().UnixNano(), Domain: model.VersionNCCL, Version: v, Units: 1, Of: 1, Life: 1, Revision: r.revision + 1,
					Witness: "NCCL's RAS at localhost:28028",
				}, rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
			}
			r.send(t, ld)
			r.fleetOf(t, 5*time.Minute, "550.90.07", "550.90.07", "550.90.07")
		}
		assert.Empty(t, r.said(t))
		nodes := func(v string) float64 {
			return r.point(t, "lockstep.fleet.nodes", map[string]any{"lockstep.version.domain": "nccl", "lockstep.version.value": v})
		}
		assert.Equal(t, []float64{1, 2}, []float64{nodes("2.27.5"), nodes("2.28.7")})
		assert.Zero(t, r.gauge(t, "fleet_abstained"))
		assert.Zero(t, r.counter(t, "unread"))
		r.stop(t)
	})
}

func TestBadVersionsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ld := plog.NewLogs()
		rl := ld.ResourceLogs().AppendEmpty()
		records := rl.ScopeLogs().AppendEmpty().LogRecords()
		versionmap.VersionToLog(&model.VersionObservation{Domain: model.VersionKernel}, records.AppendEmpty())
		versionmap.FactToLog(&model.NodeFact{Kind: model.FactDriverMismatch}, records.AppendEmpty())
		records.AppendEmpty().SetEventName("lockstep.rank.state")
		broken := records.AppendEmpty()
		broken.SetEventName("lockstep.rank.state")
		broken.Attributes().PutEmptyBytes("lockstep.rank.state.data").FromRaw([]byte("nonsense"))
		r.send(t, ld)
		r.pass(t, time.Minute)
		assert.EqualValues(t, 3, r.counter(t, "unread"))
		assert.EqualValues(t, 1, r.counter(t, "foreign_records"), "that one node does not fit together is no concern of the fleet's")
		assert.Zero(t, r.counter(t, "fleet_versions"))
		r.stop(t)
	})
}
