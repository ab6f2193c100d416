// SPDX-License-Identifier: Apache-2.0

package versionmap

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
)

func full() model.VersionObservation {
	return model.VersionObservation{
		Time: 7, HostName: "node7", HostID: "id7", Domain: model.VersionNICFirmware, Unit: "mlx5_0", Model: "MT_0000000838",
		Version: "28.39.1002", Units: 1, Witness: "/sys/class/infiniband/mlx5_0/fw_ver", Of: 2, Life: 3, Revision: 9,
	}
}

func written(o *model.VersionObservation) (pcommon.Resource, plog.LogRecord) {
	r, lr := pcommon.NewResource(), plog.NewLogRecord()
	NodeToResource(o.HostName, o.HostID, r)
	VersionToLog(o, lr)
	return r, lr
}

func TestRoundTrip(t *testing.T) {
	all := full()
	all.Unit, all.Units = "", 8
	least := model.VersionObservation{Time: 1, HostName: "n", Domain: model.VersionKernel, Version: "5.15", Units: 1, Of: 1, Life: 1, Revision: 1}
	for body, want := range map[string]model.VersionObservation{
		"nic_firmware 28.39.1002 of mlx5_0 (MT_0000000838)": full(),
		"nic_firmware 28.39.1002 of all 8 (MT_0000000838)":  all,
		"kernel 5.15": least,
	} {
		r, lr := written(&want)
		got, ok, err := LogToVersion(r, lr)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, want, got)
		assert.Equal(t, body, lr.Body().Str())
		assert.Equal(t, "lockstep.host.fact", lr.EventName())
		var p otelmap.Problems
		_, ok = otelmap.LogToFact(r, lr, &p)
		assert.False(t, ok, "it is no fact of a rank")
		assert.Zero(t, p.Count(), "and no faulty one")
	}
}

func TestFactsOfNodes(t *testing.T) {
	lr := plog.NewLogRecord()
	FactToLog(&model.NodeFact{Time: 7, Source: "fleet_version", Kind: model.FactDriverMismatch, What: "words"}, lr)
	assert.Equal(t, map[string]any{"lockstep.fact.source": "fleet_version", "lockstep.fact.kind": "driver_mismatch"}, lr.Attributes().AsRaw())
	assert.Equal(t, "words", lr.Body().Str())
	assert.Equal(t, plog.SeverityNumberWarn, lr.SeverityNumber())
	_, ok, err := LogToVersion(pcommon.NewResource(), lr)
	require.NoError(t, err)
	assert.False(t, ok)
	var p otelmap.Problems
	_, ok = otelmap.LogToFact(pcommon.NewResource(), lr, &p)
	assert.False(t, ok)
	assert.Zero(t, p.Count())
	lr.Attributes().Clear() // a fact of no kind
	for _, other := range []plog.LogRecord{lr, plog.NewLogRecord()} {
		_, ok, _ = LogToVersion(pcommon.NewResource(), other)
		assert.False(t, ok)
	}
}

func TestWhatIsNotRightIsRefused(t *testing.T) {
	for want, change := range map[string]func(node, m pcommon.Map){
		"read resource: got neither host.name nor host.id; want one":                 func(node, _ pcommon.Map) { node.Clear() },
		"read attribute host.id: got type Int; want Str":                             func(node, _ pcommon.Map) { node.PutInt("host.id", 7) },
		"read attribute lockstep.version.domain: got none; want one":                 func(_, m pcommon.Map) { m.Remove("lockstep.version.domain") },
		`read attribute lockstep.version.domain: got "x"; want one that is known`:    func(_, m pcommon.Map) { m.PutStr("lockstep.version.domain", "x") },
		"read attribute lockstep.version.value: got none; want one":                  func(_, m pcommon.Map) { m.PutStr("lockstep.version.value", "") },
		"read attribute lockstep.version.units: got 0; want at least 1":              func(_, m pcommon.Map) { m.Remove("lockstep.version.units") },
		"read attribute lockstep.version.of: got -1; want at least 1":                func(_, m pcommon.Map) { m.PutInt("lockstep.version.of", -1) },
		"read attribute lockstep.version.life: got type Str; want Int":               func(_, m pcommon.Map) { m.PutStr("lockstep.version.life", "x") },
		"read attribute lockstep.version.revision: got 0; want at least 1":           func(_, m pcommon.Map) { m.PutInt("lockstep.version.revision", 0) },
		"read attribute lockstep.version.witness: got 4097 bytes; want at most 4096": func(_, m pcommon.Map) { m.PutStr("lockstep.version.witness", strings.Repeat("x", 4097)) },
	} {
		o := full()
		node, lr := written(&o)
		change(node.Attributes(), lr.Attributes())
		_, ok, err := LogToVersion(node, lr)
		assert.True(t, ok, want)
		require.EqualError(t, err, want)
	}
	untimed := full()
	untimed.Time = 0
	_, _, err := LogToVersion(written(&untimed))
	require.EqualError(t, err, "read timestamp: got none; want when it was looked")
}

// Whatever record comes, reading it fails nowhere, and what was read survives being written and
// read again.
func FuzzVersion(f *testing.F) {
	o := full()
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	NodeToResource(o.HostName, o.HostID, rl.Resource())
	VersionToLog(&o, rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty())
	seed, err := (&plog.JSONMarshaler{}).MarshalLogs(ld)
	require.NoError(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(data)
		if err != nil {
			return
		}
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					want, ok, err := LogToVersion(rl.Resource(), lr)
					if !ok || err != nil {
						continue
					}
					r, lr := written(&want)
					got, ok, err := LogToVersion(r, lr)
					require.NoError(t, err)
					require.True(t, ok)
					require.Equal(t, want, got)
				}
			}
		}
	})
}
