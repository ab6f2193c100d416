// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stepsAfter are the steps of a process that went on.
func stepsAfter() string {
	var b strings.Builder
	for step := range 60 {
		fmt.Fprintf(&b, "step %d loss 1.9\n", step)
	}
	return b.String()
}

// analyzed is the output of analyze --json.
func analyzed(t *testing.T, dir string) (status int, r output) {
	t.Helper()
	status, stdout, _ := call("analyze", "--json", dir)
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	return status, r
}

// A line that says that a watchdog or an operation is stuck forbids health, whether or not it names
// the operation, and whatever follows it.
func TestAnalyzeLogs_StuckBesideHealth_IsNoHealth(t *testing.T) {
	const cpp = "[rank1]:[E1116 10:00:00.1 ProcessGroupNCCL.cpp:1500] "
	for name, text := range map[string]string{
		"the watchdog is stuck":          cpp + "[PG ID 0 PG GUID 0(default_pg) Rank 1] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress in monitoring enqueued collectives.\n",
		"the heartbeat monitor":          "[E ProcessGroupNCCL.cpp:916] [Rank 1] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=2\n",
		"a dump for another rank":        cpp + "[PG 0 Rank 1] Received a dump signal due to a collective timeout from  rank 3 and we will try our best to dump the debug info.\n",
		"it terminates for a hang":       "[rank1]:[F1116 10:09:00.1 ProcessGroupNCCL.cpp:1177] [PG 0 Rank 1] [PG 0 Rank 1] Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.\n",
		"an error without a name":        "[E ProcessGroupNCCL.cpp:489] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, later GPU operations might run on corrupted data.\n",
		"another backend's":              "[E1116 10:00:00.1 ProcessGroupHCCL.cpp:77] HCCL work of group 3 did not end\n",
		"steps follow":                   cpp + "[PG 0 Rank 1] ProcessGroupNCCL's watchdog got stuck for 480 seconds\n" + stepsAfter(),
		"a time-out that steps follow":   timedOut(1) + stepsAfter(),
		"somebody else's watchdog":       "2026-11-16 10:00:00 trainer ERROR watchdog: step 41 is stuck for 900 s\n",
		"a time-out of an unknown group": "[rank1]:[E1116 10:00:00.1 ProcessGroupNCCL.cpp:700] [PG ID 9 PG GUID 9 Rank 0] Timeout at NCCL work: 7, last enqueued NCCL work: 8, last completed NCCL work: 6.\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeDumps(t, 0, 1, 2, 3)
			for r := range 4 {
				putFile(t, "step 1 loss 2\n"+strings.ReplaceAll(text, "ank1]", fmt.Sprintf("ank%d]", r)), dir, fmt.Sprintf("rank_%d.log", r))
			}
			status, r := analyzed(t, dir)
			assert.NotEqual(t, exitNothing, status)
			require.NotEmpty(t, r.Hangs)
			for _, h := range r.Hangs {
				assert.NotEqual(t, "healthy", string(h.Verdict))
			}
			assert.Contains(t, r.Hangs[0].MayRun, "the logs")
			_, stdout, _ := call("analyze", dir)
			assert.NotContains(t, stdout, "Nothing hangs")

			dir = writeDumps(t, 2)
			putFile(t, text, dir, "rank_1.log")
			status, r = analyzed(t, dir)
			assert.Equal(t, exitFindings, status)
			assert.Contains(t, strings.Join(r.Hangs[0].Remarks, " "), "The logs ")
		})
	}
}

// Logs that change nothing are mentioned.
func TestAnalyzeLogs_ThatSayNothing_AreMentioned(t *testing.T) {
	const end = "Root Cause (first observed failure):\n[0]:\n  time      : x\n  host      : n\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 5)\n"
	for name, lines := range map[string]string{
		"ends":          "",
		"settings":      "[rank1]:[I1116 10:00:00.1 ProcessGroupNCCL.cpp:900] [PG 0 Rank 1] ProcessGroupNCCL initialization options: size: 4, TIMEOUT(ms): 600000, TORCH_NCCL_ENABLE_MONITORING: 1, TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: 480\n",
		"a warning":     "[rank1]:[W1116 10:00:00.1 ProcessGroupNCCL.cpp:1496] Warning: WARNING: destroy_process_group() was not called before program exit\n",
		"a watch began": "I trainer: watchdog starts with a timeout of 600 s\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeDumps(t, 0, 1, 2, 3)
			putFile(t, lines+end, dir, "torchrun.log")
			status, r := analyzed(t, dir)
			assert.Equal(t, exitNothing, status)
			require.Len(t, r.Hangs, 1)
			assert.Equal(t, []string{"The logs (1 file) have no line that says that an operation or a watchdog is stuck."}, r.Hangs[0].Remarks)
			_, stdout, _ := call("analyze", dir)
			assert.Contains(t, stdout, "The logs (1 file)")
		})
	}
}
