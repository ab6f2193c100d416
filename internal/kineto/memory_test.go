// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestEventSize(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(event{}), uintptr(64))
	assert.LessOrEqual(t, unsafe.Sizeof(launch{}), uintptr(64))
}

// kernels generates a trace of n launches and kernels, the later launched first.
type kernels struct {
	n    int
	rest string
	i    int
}

func (k *kernels) Read(p []byte) (int, error) {
	if k.rest == "" {
		switch {
		case k.i == 0:
			k.rest = `{"traceEvents":[`
		case k.i <= k.n:
			k.rest = kernel(fmt.Sprintf("k%d", k.i%1000), k.n-k.i+1, float64(k.i*10), "") + ","
		case k.i == k.n+1:
			k.rest = `{}],"distributedInfo":{"rank":1}}`
		default:
			return 0, io.EOF
		}
		k.i++
	}
	n := copy(p, k.rest)
	k.rest = k.rest[n:]
	return n, nil
}

// The promise: 64 MiB and 64 bytes for every event kept, at the peak. The
// collector is made to run often, so that the heap is what is alive.
func TestPeakMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	const n = 400_000
	var peak uint64
	measure := func() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
	}
	o := DefaultOptions()
	calls := 0
	o.Progress = func(int64) {
		if calls++; calls%20000 == 0 {
			measure()
		}
	}
	tr, err := Parse(t.Context(), &kernels{n: n}, "x", o)
	require.NoError(t, err)
	measure()
	require.Equal(t, int64(2*n), tr.Stats().Kept)
	ops := 0
	for op := range tr.Ops() {
		if op.Kind == model.KindCompute {
			require.True(t, op.Launch.OK)
		}
		if ops++; ops%100000 == 0 {
			measure()
		}
	}
	assert.Equal(t, n+1, ops)
	assert.LessOrEqual(t, peak, uint64(64<<20+64*2*n), "peak heap")
	t.Logf("peak heap %.1f MiB for %d events kept: %.1f bytes each", float64(peak)/(1<<20), 2*n, float64(peak)/float64(2*n))
}
