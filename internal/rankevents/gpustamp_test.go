// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// A span has no room for a stamp of 2^63 ns and more: it would stand before 1970.
func TestFold_GPUStampBeyondInt64_UsesHostStamps(t *testing.T) {
	for _, raw := range []bool{false, true} {
		cfg := DefaultConfig()
		cfg.RawGPUClock = raw
		f := newFakeRing(0, 2)
		r, g := attach(f, cfg)
		f.mark(0, 0)
		for i := range uint64(8) {
			o := opSpec{fn: "AllReduce", seq: i, launch: 100 * i, start: 100*i + 10, end: 100*i + 50, flags: ring.FlagKernel}
			rec := f.record(o)
			rec[8], rec[9] = uint64(unixAt(o.start)), uint64(unixAt(o.end))
			if i == 7 {
				rec[8], rec[9] = math.MaxUint64, 0
			}
			f.records = append(f.records, rec)
		}
		r.Finish(at(1000), false, g.emit(t))

		ops := opsOf(g.ops, model.KindCollective)
		require.Len(t, ops, 8)
		assert.NotEqual(t, raw, ops[6].Clock.RawStart.OK, "stamps of the GPU are used")
		last := ops[7]
		assert.Equal(t, []int64{unixAt(710), unixAt(750)}, []int64{last.Start, last.End})
		assert.Equal(t, model.ClockNote{}, last.Clock)
		assert.Empty(t, last.ClockID)
	}
}

// Two such stamps say nothing of the GPU's clock.
func TestFold_GPUStampsBeyondInt64_KeepTheClock(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	for i := range uint64(40) {
		o := opSpec{fn: "AllReduce", seq: i, launch: 100 * i, start: 100*i + 10, end: 100*i + 50, flags: ring.FlagKernel}
		rec := f.record(o)
		rec[8], rec[9] = uint64(unixAt(o.start)), uint64(unixAt(o.end))
		if i == 20 {
			rec[8], rec[9] = math.MaxUint64-10, math.MaxUint64-5
		}
		f.records = append(f.records, rec)
	}
	r.Finish(at(5000), false, g.emit(t))
	require.Len(t, opsOf(g.ops, model.KindCollective), 40)
	assert.Zero(t, r.Stats().ClockResets)
}

func TestKernels_EndBeyondInt64_IsLeftOutAndCounted(t *testing.T) {
	f := witnessed()
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.clock(0, 0)
	f.kernel(kernelSpec{name: "a", launch: 10, start: 20, end: 30})
	f.records[len(f.records)-1][3] = math.MaxUint64
	f.clock(100, 0)
	r.Finish(at(200), false, g.emit(t))
	assert.Empty(t, opsOf(g.ops, model.KindCompute))
	assert.Equal(t, int64(1), r.Stats().BadTimes)
}
