// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// FuzzParse: no input crashes or hangs, and what comes out obeys the invariants
// and the limits.
func FuzzParse(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte(`{"traceEvents":[]}`))
	f.Add([]byte(trace(gloo1of2, glooLaunch(100, "8"), glooRun(5, 110, "8"), x("cpu_op", "aten::add", 1, 5, 6, ""))))
	f.Add([]byte(trace(rank3of8,
		x("user_annotation", "ProfilerStep#4", 1, 100, 200, ""),
		kernel("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL128(x)", 1, 110, collArgs("allreduce", 41, `,"Rank":1`)),
		kernel("ncclDevKernel_SendRecv(x)", 6, 160, collArgs("send", 9, `,"Rank":2,"Dst Rank":5`)))))
	f.Add([]byte(trace(`"baseTimeNanoseconds":2305843009213693952`, x("user_annotation", "step 3", 1, 1, 2305843009213693, ""), kernel("k<1>(int)", 1, 2305843009213693, ""))))
	f.Add([]byte(trace("", x("kernel", "k", `"stream 7"`, "-1e3", "1.5e2", `"correlation":4294967296`))))
	if whole, err := os.ReadFile(filepath.Join(testdata.Recording(f, "slow"), "rank5.json.gz")); err == nil {
		f.Add(whole[:4096])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		o := DefaultOptions()
		o.MaxEvents, o.MaxStrings, o.MaxEventBytes = 50, 20, minEventBytes
		tr, err := Parse(t.Context(), bytes.NewReader(b), "rank1.json", o)
		if tr == nil {
			require.Error(t, err)
			return
		}
		s := tr.Stats()
		require.LessOrEqual(t, s.Kept, int64(o.MaxEvents))
		require.LessOrEqual(t, len(tr.names), o.MaxStrings+1)
		require.LessOrEqual(t, len(tr.texts), o.MaxStrings+1)
		require.Equal(t, err != nil && tr.stats.Truncated, s.Truncated)
		invariants(t, tr)
		for range tr.Problems() {
		}
	})
}
