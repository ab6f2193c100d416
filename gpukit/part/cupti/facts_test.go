// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// As torch.profiler 2.11 writes it, with an event of each category.
const trace = `{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": [
 {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 5, "tid": 5, "ts": 2000.000, "dur": 9.000, "args": {"External id": 1}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 2001.000, "dur": 3.000, "args": {"cbid": 211, "correlation": 7}},
 {"ph": "X", "cat": "kernel", "name": "void at::native::elementwise_kernel<128, 2>(int)", "pid": 0, "tid": 7, "ts": 2009.100, "dur": 41.407, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 7}},
 {"ph": "X", "cat": "kernel", "name": "void at::native::elementwise_kernel<128, 4>(int)", "pid": 0, "tid": 7, "ts": 2109.100, "dur": 1.003, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 8}},
 {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "pid": 0, "tid": 7, "ts": 2209.100, "dur": 2.000, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 9}},
 {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 7, "ts": 2309.100, "dur": 4.960, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 10, "bytes": 64}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7, "ts": 2409.100, "dur": 5.088, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 11, "bytes": 4000}},
 {"ph": "s", "id": 7, "pid": 5, "tid": 5, "ts": 2001.000, "cat": "ac2g", "name": "ac2g"}
], "traceName": "trace.json", "displayTimeUnit": "ms", "baseTimeNanoseconds": 1711964646000000000}`

func TestReadTrace_EventsOfTheDevice_AreCountedByKind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	require.NoError(t, os.WriteFile(path, []byte(trace), 0o600))
	got, without, err := readTrace(t.Context(), path, maxTrace)
	require.NoError(t, err)
	assert.Equal(t, 4, without, "the trace has the call of the first kernel alone")
	assert.Equal(t, tally{
		"at::native::elementwise_kernel":          {count: 2, ns: 42410},
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL": {count: 1, ns: 2000},
		setName:  {count: 1, ns: 4960},
		copyName: {count: 1, ns: 5088},
	}, got)
}

func TestReadTrace_MoreThanItsLimit_IsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	require.NoError(t, os.WriteFile(path, []byte(trace), 0o600))
	_, _, err := readTrace(t.Context(), path, int64(len(trace))-1)
	assert.ErrorContains(t, err, "want at most")
}

// A sparse file, which takes no room.
func TestReadFacts_TooLarge_IsAnError(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "facts.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"pid": 7}`), 0o600))
	_, err := readFacts(dir)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, maxFacts+1))
	_, err = readFacts(dir)
	assert.ErrorContains(t, err, "want at most 8388608")
	assert.ErrorContains(t, err, "read facts of the program: ")
}

func TestTrimmed_Trace_KeepsTheDeviceAndItsLaunches(t *testing.T) {
	b, err := trimmed([]byte(trace))
	require.NoError(t, err)
	var got struct {
		Events []struct{ Cat string } `json:"traceEvents"`
		Base   int64                  `json:"baseTimeNanoseconds"`
	}
	require.NoError(t, json.Unmarshal(b, &got))
	assert.Len(t, got.Events, 6)
	assert.Equal(t, int64(1711964646000000000), got.Base)
}

func TestReadFacts_NoFile_IsAnError(t *testing.T) {
	_, err := readFacts(t.TempDir())
	assert.ErrorContains(t, err, "read facts of the program: read file: open")
}
