// SPDX-License-Identifier: Apache-2.0

package resumemap

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func fullPrint() model.Fingerprint {
	return model.Fingerprint{
		Rank: full().Rank, Time: 7, Life: "boot/77/1", Step: 300, Hash: 0xfedcba9876543210, Start: 1000, Total: 5000, Group: "dp 1", Replicas: 8,
	}
}

func writtenPrint(v model.Fingerprint) (pcommon.Resource, plog.LogRecord) {
	ld := plog.NewLogs()
	AppendFingerprints(ld, &v.Rank, []model.Fingerprint{v})
	rl := ld.ResourceLogs().At(0)
	return rl.Resource(), rl.ScopeLogs().At(0).LogRecords().At(0)
}

func TestFingerprintRoundTrip(t *testing.T) {
	least := model.Fingerprint{Rank: model.Rank{JobID: "j", Incarnation: "i"}, Life: "l", Group: "g"}
	for _, want := range []model.Fingerprint{fullPrint(), least} {
		got, ok, err := FingerprintFromLog(writtenPrint(want))
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, want, got)
	}
	_, lr := writtenPrint(fullPrint())
	assert.Equal(t, "parameters from 1000 on hash to fedcba9876543210 after step 300", lr.Body().Str())
	assert.Equal(t, map[string]any{
		"lockstep.step": int64(300), "lockstep.fingerprint.hash": "fedcba9876543210", "lockstep.fingerprint.start": int64(1000),
		"lockstep.fingerprint.total": int64(5000), "lockstep.fingerprint.group": "dp 1", "lockstep.fingerprint.replicas": int64(8),
		"lockstep.fingerprint.life": "boot/77/1",
	}, lr.Attributes().AsRaw())
	_, ok, err := FingerprintFromLog(pcommon.NewResource(), plog.NewLogRecord())
	require.NoError(t, err)
	assert.False(t, ok)
}

func TestFingerprintsThatAreNotRightAreRefused(t *testing.T) {
	for want, change := range map[string]func(res, m pcommon.Map){
		"read lockstep.rank.fingerprint: the resource names no rank of a job":                          func(res, _ pcommon.Map) { res.PutInt("lockstep.rank", -1) },
		"read attribute lockstep.step: got none; want one":                                             func(_, m pcommon.Map) { m.Remove("lockstep.step") },
		"read attribute lockstep.fingerprint.hash: got none; want one":                                 func(_, m pcommon.Map) { m.Remove("lockstep.fingerprint.hash") },
		`read attribute lockstep.fingerprint.hash: got "+00000000000000f"; want 16 hexadecimal digits`: func(_, m pcommon.Map) { m.PutStr("lockstep.fingerprint.hash", "+00000000000000f") },
		`read attribute lockstep.fingerprint.hash: got "ff"; want 16 hexadecimal digits`:               func(_, m pcommon.Map) { m.PutStr("lockstep.fingerprint.hash", "ff") },
		"read attribute lockstep.fingerprint.group: got none; want one":                                func(_, m pcommon.Map) { m.Remove("lockstep.fingerprint.group") },
		"read attribute lockstep.fingerprint.start: got -1; want 0 or more":                            func(_, m pcommon.Map) { m.PutInt("lockstep.fingerprint.start", -1) },
		"read attribute lockstep.fingerprint.replicas: got 0; want 1 or more":                          func(_, m pcommon.Map) { m.PutInt("lockstep.fingerprint.replicas", 0) },
		"read attribute lockstep.fingerprint.life: got 97 bytes; want at most 96":                      func(_, m pcommon.Map) { m.PutStr("lockstep.fingerprint.life", strings.Repeat("x", 97)) },
	} {
		res, lr := writtenPrint(fullPrint())
		change(res.Attributes(), lr.Attributes())
		_, ok, err := FingerprintFromLog(res, lr)
		assert.True(t, ok, want)
		require.EqualError(t, err, want)
	}
}
