// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// A watchdog that stood still, and nothing else, names no rank; the report says what would decide.
func TestJudge_WatchdogStuckAlone_NamesNobody(t *testing.T) {
	stuck := func(rank string) string {
		return rank + "[E1116 10:00:00 ProcessGroupNCCL.cpp:1400] [PG ID 0 PG GUID 0(default_pg) Rank 3] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives.\n"
	}
	heartbeat := "[rank1]:[E x.cpp:1316] [PG 0 Rank 1] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=2\n"
	for name, c := range map[string]struct {
		l    logs
		want string
	}{
		"one rank":       {logs{"rank3.log": stuck("[rank3]:"), "rank0.log": "step 1\n"}, "the watchdog of rank 3 stood still for 480 seconds"},
		"all ranks":      {logs{"rank0.log": stuck("[rank0]:"), "rank1.log": stuck("[rank1]:"), "rank2.log": stuck("[rank2]:")}, "the watchdogs of ranks 0-2 stood still for 480 seconds"},
		"no time":        {logs{"rank1.log": heartbeat, "rank0.log": ""}, "the watchdog of rank 1 stood still"},
		"without a rank": {logs{"job.log": strings.Replace(stuck(""), "0(default_pg)", "7(tp)", 1)}, "the watchdog of a rank that no line names stood still for 480 seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.l.judge(t, Options{WorldSize: 4})
			assert.Equal(t, desync.NoData, r.Verdict)
			assert.Empty(t, r.Roots)
			assert.Contains(t, r.MayRun, c.want)
			assert.Contains(t, r.MayRun, "py-spy dump --pid")
			assert.NotContains(t, r.MayRun, "no log says")
		})
	}
}

// Lines that say that an operation timed out are said, whatever they do not say.
func TestJudge_TimeOutsWithoutARank_AreSaid(t *testing.T) {
	old := "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=41, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n" +
		"[PG ID 1 PG GUID 7(tp) Rank 3]  failure detected by watchdog at work sequence id: 41 PG status: last enqueued work: 41, last completed work: 40\n"
	signal := "[rank3]:[E x.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from  rank 6. Last enqueued NCCL work: 40, last completed NCCL work: 40.\n"
	for name, c := range map[string]struct {
		l       logs
		want    string
		unknown int
	}{
		"one":            {logs{"job.log": old}, "an operation timed out on a rank that no line names", 1},
		"in two files":   {logs{"a.log": old, "b.log": old}, "2 operations timed out on ranks that no line names", 2},
		"on another":     {logs{"rank3.log": signal}, "an operation timed out on rank 6, whose log is not among these or does not have it", 0},
		"beside a rank":  {logs{"job.log": old, "rank0.log": "step 3\n"}, "an operation timed out on a rank that no line names", 1},
		"nothing at all": {logs{"rank0.log": "step 3\n"}, "no log says that an operation timed out", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.l.judge(t, Options{WorldSize: 8})
			assert.Equal(t, desync.NoData, r.Verdict)
			assert.Contains(t, r.MayRun, c.want)
			assert.Len(t, r.Unknown, c.unknown)
			if name != "nothing at all" {
				assert.NotContains(t, r.MayRun, "no log says")
			}
		})
	}
}

// The rank without a line may be the one whose lines have no rank.
func TestJudge_TimeOutWithoutARankBesideASilentRank_AccusesNobody(t *testing.T) {
	l := files(versions["2.14"], 4, map[int64]string{2: "step 1\n"})
	assertRoot(t, l.judge(t, Options{WorldSize: 4}), 2, model.ClassNotScheduled, "all_reduce 41")
	l["job.log"] = "[PG ID 1 PG GUID 7(tp) Rank 1]  failure detected by watchdog at work sequence id: 9 PG status: last enqueued work: 9, last completed work: 8\n"
	r := l.judge(t, Options{WorldSize: 4})
	require.Len(t, r.Roots, 1)
	assert.Empty(t, r.Roots[0].Finding.Ranks, fmt.Sprint(r.Roots[0].Finding.Class))
}
