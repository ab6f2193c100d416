// SPDX-License-Identifier: Apache-2.0

package rasset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/ras"
	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

// parted is an answer in text of a job of 16 ranks in shards of 4: those of the second shard are behind
// in the communicator of all. of says what its shard has launched.
func parted(t *testing.T, of string) *ras.Status {
	t.Helper()
	warnings := "#0-0 (00000000000000ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n" +
		"  12 ranks have launched up to operation 9\n  4 ranks have launched up to operation 8\n"
	for r := 4; r < 8; r++ {
		warnings += fmt.Sprintf("  Rank %d -- GPU %d managed by process %d on node n2\n", r, r-4, 100+r)
	}
	if of != "" {
		warnings += "\n#1-1 (00000000000000cd) MISMATCH\n  Communicator ranks have different AllGather operation counts\n" + of
	}
	report := strings.Replace(rastest.Report(16, "", warnings), "\n\nErrors\n",
		"\n    1         4         1         4         4        16   RUNNING  MISMATCH\n\nErrors\n", 1)
	all, err := ras.ParseAnswers(strings.NewReader(report), 1<<20)
	require.NoError(t, err)
	return all[0]
}

// Text lists the processes of the few members that stand out. The others that are behind in the
// communicator of all may be those that wait for one of them in its own.
func TestJudge_MembersThatTextDoesNotList(t *testing.T) {
	one := func(launched string) string {
		return "  3 ranks have launched up to operation 30\n  Rank 2 has launched " + launched + " -- GPU 2 managed by process 106 on node n2\n"
	}
	for name, c := range map[string]struct {
		shard string
		named []int64
	}{
		"nothing else differs":            {"", []int64{4, 5, 6, 7}},
		"one is behind in its shard, too": {one("up to operation 29"), []int64{6}},
		"by more than one":                {one("up to operation 12"), []int64{6}},
		"it has launched nothing there":   {strings.Replace(one("nothing"), "launched nothing", "not launched any operations", 1), []int64{6}},
		"two are behind there": {"  2 ranks have launched up to operation 30\n  2 ranks have launched up to operation 29\n" +
			"  Rank 1 -- GPU 1 managed by process 105 on node n2\n  Rank 2 -- GPU 2 managed by process 106 on node n2\n", []int64{5, 6}},
		"one is ahead in its shard": {one("up to operation 31"), []int64{4, 5, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			s := parted(t, c.shard)
			rep := judged(answer("d/1", s, 0), answer("d/2", s, 30*time.Second))
			require.Equal(t, desync.Hang, rep.Verdict, rep.MayRun)
			var named []int64
			for i := range rep.Roots {
				named = append(named, rep.Roots[i].Finding.Ranks...)
			}
			assert.Equal(t, c.named, named)
		})
	}
}

// Communicators of which text does not list all members may share processes: they are of one report. A
// process that is behind in more of them than others may have more of them.
func TestJudge_CommunicatorsThatMayShareProcesses_AreOneReport(t *testing.T) {
	for _, victims := range []int{2, 3, 7} {
		warnings := ""
		mismatch := func(hash, rank, pid int, fn string) {
			warnings += fmt.Sprintf("#1-%d (%016x) MISMATCH\n  Communicator ranks have different %s operation counts\n  3 ranks have launched up to operation 30\n"+
				"  Rank %d has launched up to operation 29 -- GPU 0 managed by process %d on node n2\n\n", hash-100, hash, fn, rank, pid)
		}
		mismatch(100, 2, 206, "AllReduce")
		mismatch(101, 1, 206, "AllGather")
		for k := range victims {
			mismatch(102+k, 1, 300+k, "AllGather")
		}
		report := strings.Replace(strings.Replace(rastest.Report(64, "", warnings), "MISMATCH\n\nErrors", "OK\n\nErrors", 1), "\n\nErrors\n",
			"\n    1        32         4         1         4        64   RUNNING  MISMATCH\n\nErrors\n", 1)
		all, err := ras.ParseAnswers(strings.NewReader(report), 1<<20)
		require.NoError(t, err)
		hangs := Judge([]Answer{answer("d/1", all[0], 0), answer("d/2", all[0], 30*time.Second)}, Options{Job: "j"})
		require.Len(t, hangs, 1, victims)
		for i := range hangs[0].Roots {
			f := &hangs[0].Roots[i].Finding
			assert.Empty(t, f.Ranks, victims)
			assert.Contains(t, evidence.Encode(f.Evidence), "process 206", victims)
			assert.Contains(t, evidence.Encode(f.Evidence), "process 301", victims)
		}
		require.Len(t, hangs[0].Roots, 1, victims)
	}
}
