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

func full() model.Resume {
	return model.Resume{
		Rank: model.Rank{
			JobName: "llama", JobID: "job", Incarnation: "life", Rank: 3, WorldSize: model.Some[int64](4), HostName: "node1", HostID: "h1",
			HWID: "GPU-7", PID: model.Some[int64](77),
		},
		Time: 7, Life: "boot/77/1", Number: 2, Step: 1200, OptimizerStep: model.Some[int64](1199),
		DataCursor: "shard-7:48812", RNGDigest: strings.Repeat("0f", 16), Replica: "dp 1",
	}
}

func written(v *model.Resume) (pcommon.Resource, plog.LogRecord) {
	ld := plog.NewLogs()
	Append(ld, v)
	rl := ld.ResourceLogs().At(0)
	return rl.Resource(), rl.ScopeLogs().At(0).LogRecords().At(0)
}

func TestRoundTrip(t *testing.T) {
	least := model.Resume{Rank: model.Rank{JobID: "j", Incarnation: "i"}, Life: "l", Number: 1}
	for body, want := range map[string]model.Resume{"rank 3 resumes from step 1200": full(), "rank 0 resumes from step 0": least} {
		res, lr := written(&want)
		got, ok, err := FromLog(res, lr)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, want, got)
		assert.Equal(t, []string{body, "lockstep.rank.resumed"}, []string{lr.Body().Str(), lr.EventName()})
	}
	v := full()
	_, lr := written(&v)
	assert.Equal(t, map[string]any{
		"lockstep.resume.step": int64(1200), "lockstep.resume.optimizer_step": int64(1199), "lockstep.resume.data_cursor": "shard-7:48812",
		"lockstep.resume.rng_digest": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "lockstep.resume.replica": "dp 1",
		"lockstep.resume.number": int64(2), "lockstep.resume.life": "boot/77/1",
	}, lr.Attributes().AsRaw())
}

func TestOtherEventsAreNobodys(t *testing.T) {
	_, ok, err := FromLog(pcommon.NewResource(), plog.NewLogRecord())
	require.NoError(t, err)
	assert.False(t, ok)
}

func TestWhatIsNotRightIsRefused(t *testing.T) {
	for want, change := range map[string]func(res, m pcommon.Map){
		"read lockstep.rank.resumed: the resource names no rank of a job":                 func(res, _ pcommon.Map) { res.PutInt("lockstep.rank", -1) },
		"read attribute lockstep.resume.step: got none; want one":                         func(_, m pcommon.Map) { m.Remove("lockstep.resume.step") },
		"read attribute lockstep.resume.step: got -1; want 0 or more":                     func(_, m pcommon.Map) { m.PutInt("lockstep.resume.step", -1) },
		"read attribute lockstep.resume.step: got type Double; want Int":                  func(_, m pcommon.Map) { m.PutDouble("lockstep.resume.step", 1) },
		"read attribute lockstep.resume.optimizer_step: got -5; want 0 or more":           func(_, m pcommon.Map) { m.PutInt("lockstep.resume.optimizer_step", -5) },
		"read attribute lockstep.resume.number: got 0; want 1 or more":                    func(_, m pcommon.Map) { m.PutInt("lockstep.resume.number", 0) },
		"read attribute lockstep.resume.life: got none; want one":                         func(_, m pcommon.Map) { m.Remove("lockstep.resume.life") },
		"read attribute lockstep.resume.life: got 97 bytes; want at most 96":              func(_, m pcommon.Map) { m.PutStr("lockstep.resume.life", strings.Repeat("x", 97)) },
		"read attribute lockstep.resume.data_cursor: got 33 bytes; want at most 32":       func(_, m pcommon.Map) { m.PutStr("lockstep.resume.data_cursor", strings.Repeat("x", 33)) },
		`read attribute lockstep.resume.replica: got "a\x1b"; want no control characters`: func(_, m pcommon.Map) { m.PutStr("lockstep.resume.replica", "a\x1b") },
		`read attribute lockstep.resume.rng_digest: got "0f"; want 32 hexadecimal digits`: func(_, m pcommon.Map) { m.PutStr("lockstep.resume.rng_digest", "0f") },
		`read attribute lockstep.resume.rng_digest: got "` + strings.Repeat("z", 32) + `"; want 32 hexadecimal digits`: func(_, m pcommon.Map) {
			m.PutStr("lockstep.resume.rng_digest", strings.Repeat("z", 32))
		},
	} {
		v := full()
		res, lr := written(&v)
		change(res.Attributes(), lr.Attributes())
		_, ok, err := FromLog(res, lr)
		assert.True(t, ok, want)
		require.EqualError(t, err, want)
	}
}
