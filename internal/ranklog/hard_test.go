// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// One log may have several lives of a job: the last one counts.
func TestJudge_EarlierHangs_AreForgotten(t *testing.T) {
	at := func(rank, seq int64) string {
		s := inDefault(rank)
		s.seq = seq
		return versions["2.14"](s)
	}
	life := func(seq, absent int64) string {
		var b strings.Builder
		for r := range int64(4) {
			if r == absent {
				fmt.Fprintf(&b, outOfMemory, r, r)
				continue
			}
			b.WriteString(at(r, seq))
		}
		return b.String()
	}
	const again = "I1116 10:01:00.1 1 torch/distributed/elastic/agent/server/api.py:879] [default] Worker group FAILED. 2/3 attempts left; will restart worker group\n"
	for name, text := range map[string]string{
		"later numbers":             life(41, 3) + life(900, 1),
		"the same number, a mark":   life(41, 3) + again + life(41, 1),
		"lower numbers, a mark":     life(41, 3) + again + life(2, 1),
		"three lives":               life(41, 3) + again + life(41, 0) + again + life(50, 1),
		"an error before, a mark":   fmt.Sprintf(outOfMemory, 2, 2) + again + life(41, 1),
		"an error before, and used": fmt.Sprintf(outOfMemory, 2, 2) + life(41, 1),
	} {
		t.Run(name, func(t *testing.T) {
			r := logs{"job.out": text}.judge(t, Options{WorldSize: 4})
			require.Len(t, r.Roots, 1)
			assert.Equal(t, []any{model.Some(int64(1)), model.ClassProcessDead}, []any{r.Roots[0].Finding.Rank, r.Roots[0].Finding.Class})
		})
	}
}

// Numbers that fall begin a life, without a mark.
func TestJudge_LivesWithoutAMark_ArePartedByNumbers(t *testing.T) {
	var b strings.Builder
	for _, seq := range []int64{41, 7} {
		for r := range int64(4) {
			s := inDefault(r)
			if s.seq = seq; seq == 41 || r != 1 {
				b.WriteString(versions["2.14"](s))
			}
		}
	}
	assertRoot(t, logs{"job.out": b.String()}.judge(t, Options{WorldSize: 4}), 1, model.ClassNotScheduled, "all_reduce 7")
}

// An error after which the rank went on is not its end.
func TestJudge_CaughtErrors_AreNoEnd(t *testing.T) {
	caught := "Traceback (most recent call last):\nModuleNotFoundError: No module named 'flash_attn'\n"
	steps := strings.Repeat("step 1\n", 200)
	for name, text := range map[string]string{
		"an optional module": caught + steps,
		"by the rank":        "[rank%[1]d]: Traceback (most recent call last):\n[rank%[1]d]: ValueError: skipped\n" + steps,
		"a batch too large":  "torch.OutOfMemoryError: CUDA out of memory. skip this batch\n" + steps,
	} {
		t.Run(name, func(t *testing.T) {
			silent := map[int64]string{}
			for _, r := range []int64{3, 6} {
				silent[r] = strings.ReplaceAll(text, "%[1]d", fmt.Sprint(r))
			}
			r := files(versions["2.14"], 8, silent).judge(t, Options{WorldSize: 8})
			require.Len(t, r.Roots, 1)
			assert.Empty(t, r.Roots[0].Finding.Ranks, "several are silent, and none is known to have ended")
			assert.Equal(t, []int64{3, 6}, r.Roots[0].Finding.Candidates)
		})
	}
}

const trace2 = "[rank2]: Traceback (most recent call last):\n"

// A rank whose connection another one's end has closed is no culprit.
func TestJudge_ResultsOfOthersEnds_AccuseNobody(t *testing.T) {
	for _, text := range []string{
		"[rank2]: Traceback (most recent call last):\n[rank2]: torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited or there was a network error, NCCL version 2.21.5\n",
		"[rank2]: Traceback (most recent call last):\n[rank2]: RuntimeError: NCCL communicator was aborted on rank 2.\n",
		"[rank2]: Traceback (most recent call last):\n[rank2]: torch.distributed.DistNetworkError: Connection reset by peer\n",
		"[rank2]: Traceback (most recent call last):\nKeyboardInterrupt\n",
		"terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  NCCL error: unhandled system error\n",
		trace2 + "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Terminated. \n",
		trace2 + "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete\n",
		trace2 + "RuntimeError: [Rank 2]: Ranks 5 failed to pass monitoredBarrier in 1800000 ms\n",
		trace2 + "subprocess.CalledProcessError: Command '['python', 't.py']' died with <Signals.SIGABRT: 6>.\n",
		trace2 + "subprocess.CalledProcessError: Command '['python', 't.py']' died with <Signals.SIGTERM: 15>.\n",
		trace2 + "TimeoutError: The client socket has timed out after 300000ms while trying to connect to (node0, 29500).\n",
		trace2 + "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n",
		trace2 + "RuntimeError: NCCL Error 6: remote process exited or there was a network error\n",
		trace2 + "RuntimeError: Stop_waiting response is expected\n",
		trace2 + "wandb.errors.CommError: Run initialization has timed out after 90.0 sec.\nretrying offline\n",
		"Fatal Python error: Aborted\n\nThread 0x00007f (most recent call first):\n  File \"a.py\", line 3 in wait\n",
		"[bench] batch 64: OutOfMemoryError: CUDA out of memory, using 32\n",
	} {
		r := files(versions["2.14"], 8, map[int64]string{2: text, 6: ""}).judge(t, Options{WorldSize: 8})
		require.Len(t, r.Roots, 1)
		assert.Empty(t, r.Roots[0].Finding.Ranks, text)
		assert.Equal(t, []int64{2, 6}, r.Roots[0].Finding.Candidates, text)

		l := files(versions["2.14"], 8, map[int64]string{2: text, 5: fmt.Sprintf(outOfMemory, 5, 5)})
		l["torchrun.log"] = fmt.Sprintf(torchrun, 2, 1, "To enable traceback see: https://pytorch.org")
		r = l.judge(t, Options{WorldSize: 8})
		require.NotEmpty(t, r.Roots)
		assert.Equal(t, model.Some(int64(5)), r.Roots[0].Finding.Rank)
		for i := range r.Roots {
			assert.NotContains(t, r.Roots[i].Finding.Ranks, int64(2))
		}
	}
}

// torchrun --tee writes the rank in the node, which is that of the job where lines confirm it.
func TestJudge_RankInTheNode_IsTheJobsWhereConfirmed(t *testing.T) {
	tee := func(nodes int64) string {
		var b strings.Builder
		for r := range 4 * nodes {
			text := strings.SplitN(versions["2.1"](inDefault(r)), "\n", 2)[0]
			if r == 2 {
				text = "Traceback (most recent call last):\n" + fmt.Sprintf("[default%d]:", r%4) + "ValueError: bad"
			}
			fmt.Fprintf(&b, "[default%d]:%s\n", r%4, text)
		}
		return b.String()
	}
	assertRoot(t, logs{"job.log": tee(1)}.judge(t, Options{WorldSize: 4}), 2, model.ClassProcessDead, "all_reduce 41")
	r := logs{"job.log": tee(2)}.judge(t, Options{WorldSize: 8})
	require.Len(t, r.Roots, 1)
	assert.Equal(t, model.ClassDumpMissing, r.Roots[0].Finding.Class, "of two nodes' lines nobody knows whose the error is")
	assert.Equal(t, []int64{2}, r.Roots[0].Finding.Candidates)
	assert.Contains(t, evidence.Encode(r.Roots[0].Finding.Evidence), "an error in the logs whose rank is not known: ValueError: bad (job.log:")
}

// Messages name no peer: nobody is accused by their numbers.
func TestJudge_Messages_AccuseNobodyByNumbers(t *testing.T) {
	for _, op := range []string{"SEND", "RECV", "COALESCED"} {
		l := logs{}
		for r := range int64(4) {
			s := inDefault(r)
			if r != 2 {
				s.op, s.seq = op, 40+r
			}
			l[fmt.Sprintf("rank%d.log", r)] = versions["2.14"](s)
		}
		r := l.judge(t, Options{WorldSize: 4})
		for i := range r.Roots {
			assert.Empty(t, r.Roots[i].Finding.Ranks, "%s: %+v", op, r.Roots[i].Finding)
		}
	}
}

// Ranks that wait for one another in two groups are the cycle, and nobody else is in it.
func TestJudge_TwoGroups_AreOneGraph(t *testing.T) {
	signal := "[rank%[1]d]:[E x.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank %[1]d] Received a dump signal due to a collective timeout from  rank 6. Last enqueued NCCL work: 40, last completed NCCL work: 40.\n"
	l := files(versions["2.14"], 8, map[int64]string{
		0: versions["2.14"](&stuckIn{rank: 0, in: 0, group: "5", desc: "tp", seq: 7, op: "_ALLGATHER_BASE", numIn: 4, out: 8}) + fmt.Sprintf(signal, 0),
	})
	r := l.judge(t, Options{WorldSize: 8})
	for i := range r.Roots {
		for _, rank := range slices.Concat(r.Roots[i].Finding.Ranks, r.Roots[i].Finding.Candidates) {
			assert.LessOrEqual(t, rank, int64(1), "%+v", r.Roots[i].Finding)
		}
	}
}

// What a rank has enqueued behind is no other call than the others'.
func TestJudge_OperationsBehind_AreNoMismatch(t *testing.T) {
	l := logs{}
	for r := range int64(4) {
		first, second := inDefault(r), inDefault(r)
		first.enqueued, second.seq, second.op, second.numIn = 42, 42, "_ALLGATHER_BASE", 65536
		text := versions["2.14"](first)
		if r != 3 {
			text += "[rank" + fmt.Sprint(r) + "]:[E x.cpp:632] [Rank " + fmt.Sprint(r) + "] Watchdog caught collective operation timeout: " + second.work() + "\n"
		}
		l[fmt.Sprintf("rank%d.log", r)] = text
	}
	r := l.judge(t, Options{WorldSize: 4})
	require.Len(t, r.Roots, 1)
	assert.Equal(t, []any{model.ClassStalledOp, "all_reduce 41"}, []any{r.Roots[0].Finding.Class, r.Roots[0].Finding.Op})
}

// The size of the job may stand in the logs.
func TestJudge_SizeOfTheJob_IsRead(t *testing.T) {
	for name, c := range map[string]struct {
		line  string
		ranks int
	}{
		"torchrun":        {"  global_world_sizes=[16, 16, 16]\n", 16},
		"DeepSpeed":       {"[INFO] [launch.py:158] dist_world_size=16\n", 16},
		"the environment": {"export WORLD_SIZE=16\n", 16},
		"of the node":     {"export LOCAL_WORLD_SIZE=16\n", 8},
		"too small":       {"dist_world_size=4\n", 8},
	} {
		t.Run(name, func(t *testing.T) {
			l := files(versions["2.14"], 8, nil)
			l["launcher.log"] = c.line
			r := l.judge(t, Options{})
			assert.Equal(t, c.ranks, r.Ranks+len(r.Absent))
			assertNobodyWhoWaits(t, r, 8)
		})
	}
}

func assertNobodyWhoWaits(t *testing.T, r *Result, below int64) {
	t.Helper()
	for i := range r.Roots {
		for _, rank := range slices.Concat(r.Roots[i].Finding.Ranks, r.Roots[i].Finding.Candidates) {
			assert.GreaterOrEqual(t, rank, below)
		}
	}
}

func TestFaultOf(t *testing.T) {
	for text, c := range map[string]struct {
		inTrace bool
		want    weight
	}{
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB":                             {false, weightDevice},
		"torch.cuda.OutOfMemoryError: CUDA out of memory.":                                                {true, weightDevice},
		" ValueError: bad sample":                                                                         {true, weightOwn},
		"StopIteration":                                                                                   {true, weightOwn},
		"subprocess.TimeoutExpired: Command 'x' timed out":                                                {true, weightResult},
		"Fatal Python error: Segmentation fault":                                                          {false, weightDevice},
		" 1%| | 24/1752 [01:08<1:22:56,  2.88s/it] torch.OutOfMemoryError: CUDA out of memory.":           {true, weightDevice},
		"RuntimeError: DataLoader worker (pid 4) is killed by signal: Killed.":                            {true, weightOwn},
		"RuntimeError: DataLoader worker (pid 4) is killed by signal: Bus error.":                         {true, weightDevice},
		"[n1:12:0:99] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)": {false, weightDevice},
		"Killed": {false, weightDevice},
		"[  99.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus.":                            {false, weightDevice},
		"CUDA error: uncorrectable ECC error encountered":                                                         {false, weightDevice},
		"torch.distributed.DistBackendError: NCCL error in: x.cpp:1, ncclRemoteError: A call failed":              {true, weightResult},
		"n1:12:99 [0] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer n2, error 104": {false, weightResult},
		"ValueError: printed by a program":                                                                        {false, weightNone},
		"nvidia-smi: volatile uncorrectable ECC errors: 0":                                                        {false, weightNone},
		"INFO: the job was not Killed":                                                                            {false, weightNone},
		"step 3: loss 2.1":                                                                                        {true, weightNone},
		"   File \"x.py\", line 3, in f":                                                                          {true, weightNone},
		"UserWarning: CUDA error: checks are off":                                                                 {false, weightNone},
	} {
		_, got := faultOf([]byte(text), c.inTrace)
		assert.Equal(t, c.want, got, text)
	}
}

func TestLabelled_TablesAreNoLabels(t *testing.T) {
	for _, line := range []string{"0.12 | 3", "loss | 2.1", "| 1 | 2 |", "epoch 1 | 2", " 1%| | 24/1752"} {
		l, rest := labelled([]byte(line))
		assert.Empty(t, l.text, line)
		assert.Equal(t, line, string(rest))
	}
	for line, want := range map[string]string{
		"trainer-3  | x": "trainer-3", "[pod/a-1/b] x": "pod/a-1/b", "(W pid=3, ip=1.2.3.4) x": "W pid=3, ip=1.2.3.4", "[1,3]<stdout>:x": "mpi 3",
		" 3: x": "task 3", "[default7]:x": "local 7", "2026-11-16T10:00:00Z 3: x": "task 3",
	} {
		l, rest := labelled([]byte(line))
		assert.Equal(t, []string{want, "x"}, []string{l.text, string(rest)}, line)
	}
}

// An error that is caught is not the end of its rank: lines of steps follow it, fewer than an end
// leaves, or ranks that wait wrote it, too.
func TestJudge_ErrorOfSeveralRanksOrBeforeSteps_IsNoEnd(t *testing.T) {
	const trace = "Traceback (most recent call last):\n"
	steps := func(from, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "step %d loss 2.%d\n", from+i, i)
		}
		return b.String()
	}
	missing := trace + "ModuleNotFoundError: No module named 'flash_attn'\nfalling back to sdpa\n"
	for name, c := range map[string]struct{ all, silent string }{
		"of all ranks":              {missing, ""},
		"of all ranks, then steps":  {missing + steps(0, 20), ""},
		"numbers in it differ":      {trace + "ValueError: bad image 17\n", trace + "ValueError: bad image 4\n"},
		"of one, then steps":        {steps(0, 3), trace + "ValueError: bad image 17\nskipped\n" + steps(3, 50)},
		"of one, a progress bar":    {"", trace + "OSError: stale handle\n 1%|  | 24/1752 [01:08<1:22:56,  2.88s/it]\r 2%|  | 25/1752 [01:09<1:22:55,  2.87s/it]\r 3%|  | 26/1752 [01:10<1:22:54,  2.87s/it]\r 4%|  | 27/1752 [01:11<1:22:53,  2.87s/it]\r"},
		"of one, lines of two kind": {"", trace + "OSError: x\nEpoch 1 begins\nstep 1\nval loss 3.1\nstep 2\nval loss 3.0\nstep 3\n"},
		"memory, then steps":        {"", trace + "torch.OutOfMemoryError: CUDA out of memory.\nbatch 32 failed, trying 16\n" + steps(3, 30)},
	} {
		t.Run(name, func(t *testing.T) {
			l := files(versions["2.14"], 8, map[int64]string{3: c.all + c.silent, 5: c.all + c.silent})
			for file, text := range l {
				if file != "rank3_stderr.log" && file != "rank5_stderr.log" {
					l[file] = c.all + text
				}
			}
			r := l.judge(t, Options{WorldSize: 8})
			require.Len(t, r.Roots, 1)
			assert.Empty(t, r.Roots[0].Finding.Ranks)
			assert.Equal(t, []int64{3, 5}, r.Roots[0].Finding.Candidates)
			for _, e := range r.Errors {
				assert.False(t, e.Ended)
			}

			l["rank5_stderr.log"] = versions["2.14"](inDefault(5))
			assertRoot(t, l.judge(t, Options{WorldSize: 8}), 3, model.ClassNotScheduled, "all_reduce 41")
			l["rank3_stderr.log"] += trace + "KeyError: 'tokens'\n"
			assertRoot(t, l.judge(t, Options{WorldSize: 8}), 3, model.ClassProcessDead, "all_reduce 41")
		})
	}
}

// What a process writes while it ends is no step: the error before is its end.
func TestJudge_LinesOfAnEnd_KeepTheError(t *testing.T) {
	for name, text := range map[string]string{
		"stack frames":       strings.Repeat("  File \"a.py\", line 3, in train\n", 20),
		"threads":            "Thread 0x1 (most recent call first):\n  File \"step.py\", line 3\nThread 0x2 (most recent call first):\n  File \"step.py\", line 4\n",
		"NCCL":               "n1:12:99 [0] NCCL INFO [Service thread] Connection closed by localRank 3\nn1:12:99 [0] NCCL INFO [Service thread] Connection closed by localRank 4\nn1:12:99 [0] NCCL INFO [Service thread] Connection closed by localRank 5\nn1:12:99 [0] NCCL INFO [Service thread] Connection closed by localRank 6\n",
		"a summary of wandb": "wandb: train/loss 2.3\nwandb: train/step 40\nwandb: train/epoch 1\n",
		"device assertions": "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nDevice-side assertion tracking was not enabled by user.\n" +
			"Exception raised from c10_cuda_check at x.cpp:43 (most recent call first):\nframe #0: c10::Error::Error (0x7f00 in /lib/libc10.so)\n",
		"a launcher":          "[2026-11-16 10:00:00,1] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4711\nsrun: error: n1: task 5: Exited with exit code 1\n/var/spool/slurm_script: line 20: 4711 Killed   python t.py\n",
		"a bar as it stood":   " 3%|# | 24/1752 [01:08<1:22:56,  2.88s/it]\n",
		"left-overs":          "/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 12 leaked semaphore objects to clean up at shutdown\n  warnings.warn(\nException ignored in: <function It.__del__ at 0x7f12>\n",
		"an own group":        "[rank5]:[W1116 10:00:00.1 ProcessGroupNCCL.cpp:1250] Warning: process group has NOT been destroyed before we destruct ProcessGroupNCCL.\n",
		"hundreds of threads": strings.Repeat("Thread 0x00007f12 (most recent call first):\n  File \"a.py\", line 3 in wait\n  File \"b.py\", line 4 in run\n\n", 150) + "Extension modules: numpy, torch._C (total: 2)\n",
	} {
		t.Run(name, func(t *testing.T) {
			own := " 3%|# | 24/1752 [01:08<1:22:56,  2.88s/it]" + fmt.Sprintf(outOfMemory, 5, 5) + text
			l := files(versions["2.14"], 8, map[int64]string{3: "", 5: own})
			r := l.judge(t, Options{WorldSize: 8})
			require.NotEmpty(t, r.Roots)
			f := &r.Roots[0].Finding
			assert.Equal(t, []any{model.Some(int64(5)), model.ClassProcessDead}, []any{f.Rank, f.Class})
			assert.Greater(t, f.Confidence, 0.9)
		})
	}
}

// torchrun of each node names a root cause of its own: the earliest counts, and of those of one
// moment the one that explains itself.
func TestJudge_SummariesOfSeveralNodes_TheEarliestIsTheRank(t *testing.T) {
	const see = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
	at := func(rank int64, time, reason string, code int) string {
		return strings.ReplaceAll(fmt.Sprintf(torchrun, rank, code, reason), "2026-11-16_10:00:00", time)
	}
	const first, soon, second = "2026-11-16_10:00:00", "2026-11-16_10:00:01", "2026-11-16_10:00:07"
	for name, c := range map[string]struct {
		own, n0, n1 string // own: what rank 3 writes
		want        []int64
	}{
		"an error in its log":         {fmt.Sprintf(outOfMemory, 3, 3), at(3, first, see, 1), at(12, first, see, 1), []int64{3}},
		"an error in its log, soon":   {fmt.Sprintf(outOfMemory, 3, 3), at(3, soon, see, 1), at(12, first, see, 1), []int64{3}},
		"an error in its log, later":  {fmt.Sprintf(outOfMemory, 3, 3), at(3, second, see, 1), at(12, first, see, 1), []int64{12}},
		"a record":                    {"", at(3, soon, "Traceback (most recent call last):\n  KeyError: 'x'", 1), at(12, first, see, 1), []int64{3}},
		"a record, later":             {"", at(3, second, "Traceback (most recent call last):\n  KeyError: 'x'", 1), at(12, first, see, 1), []int64{12}},
		"a signal":                    {"", at(3, soon, "Signal 9 (SIGKILL) received by PID 1", -9), at(12, first, see, 1), []int64{3}},
		"a signal, later":             {"", at(3, second, "Signal 9 (SIGKILL) received by PID 1", -9), at(12, first, see, 1), []int64{12}},
		"the earlier":                 {"", at(3, first, see, 1), at(12, second, see, 1), []int64{3}},
		"the earlier is on the other": {"", at(3, second, see, 1), at(12, first, see, 1), []int64{12}},
		"both at once":                {"", at(3, first, see, 1), at(12, first, see, 1), nil},
		"two signals":                 {"", at(3, first, "Signal 9", -9), at(12, second, "Signal 11", -11), []int64{3}},
		"two signals, reversed":       {"", at(3, second, "Signal 7", -7), at(12, first, "Signal 9", -9), []int64{12}},
		"two signals, of one moment":  {"", at(3, soon, "Signal 9", -9), at(12, first, "Signal 11", -11), []int64{3, 12}},
		"a result, later":             {"", at(3, first, see, 1), at(12, second, "Traceback (most recent call last):\n  ConnectionResetError: [Errno 104]", 1), []int64{3}},
		"an own error, a day later":   {"", at(3, "2026-11-15_23:59:59", see, 2), at(12, first, "Traceback (most recent call last):\n  ValueError: x", 1), []int64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			l := files(versions["2.14"], 16, map[int64]string{3: c.own, 12: ""})
			l["n0.log"], l["n1.log"] = c.n0, c.n1
			r := l.judge(t, Options{WorldSize: 16})
			var got []int64
			for i := range r.Roots {
				got = append(got, r.Roots[i].Finding.Ranks...)
			}
			slices.Sort(got)
			assert.Equal(t, c.want, got)
		})
	}
}

// Lines of steps behind a time-out are of a later life of the job, or of a job that went on: what
// precedes them is over.
func TestJudge_StepsBehindATimeOut_BeginALife(t *testing.T) {
	steps := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "step %d loss 2.3\n", i)
		}
		return b.String()
	}
	waits := func(rank, seq int64) string {
		s := inDefault(rank)
		s.seq = seq
		return versions["2.14"](s)
	}
	job := func(first, second int64, late int64) logs {
		l := logs{}
		for r := range int64(8) {
			text := "step 1\n"
			if r == 5 {
				text += fmt.Sprintf(outOfMemory, 5, 5)
			} else {
				text += waits(r, first)
			}
			text += steps(50)
			if r != late && second > 0 {
				text += waits(r, second)
			}
			l[fmt.Sprintf("rank%d.log", r)] = text
		}
		return l
	}
	for _, second := range []int64{41, 42, 90, 12} {
		f := assertRoot(t, job(41, second, 2).judge(t, Options{WorldSize: 8}), 2, model.ClassNotScheduled, fmt.Sprintf("all_reduce %d", second))
		assert.Equal(t, int64(7), f.WaitingCount.Or(0))
	}
	assertRoot(t, job(41, 12, 5).judge(t, Options{WorldSize: 8}), 5, model.ClassNotScheduled, "all_reduce 12")
	r := job(41, 0, 0).judge(t, Options{WorldSize: 8})
	assert.Equal(t, []any{desync.NoData, int64(0)}, []any{r.Verdict, r.Waiting})
	assert.Contains(t, r.MayRun, "of an earlier life of the job")
	assert.Contains(t, r.Earlier, "7 ranks timed out in all_reduce 41 of default_pg")
	assert.Contains(t, r.Earlier, "rank 5: torch.OutOfMemoryError: CUDA out of memory")

	// Of several ranks in one log a mark parts the lives: Slurm's, once steps follow.
	merged := ""
	for r := range int64(4) {
		if r != 2 {
			merged += waits(r, 41)
		}
	}
	const mark = "slurmstepd: error: *** JOB 99 ON n1 CANCELLED AT 2025-11-16T10:00:00 DUE TO JOB REQUEUE ***\n"
	assertRoot(t, logs{"slurm-99.out": merged + "[rank2]: step 3\n" + mark}.judge(t, Options{WorldSize: 4}), 2, model.ClassNotScheduled, "all_reduce 41")
	r = logs{"slurm-99.out": merged + mark + steps(5)}.judge(t, Options{WorldSize: 4})
	assert.Equal(t, int64(0), r.Waiting)
	r = logs{"slurm-99.out": merged + steps(50)}.judge(t, Options{WorldSize: 4})
	assert.NotEmpty(t, r.Roots, "the steps may be those of one rank before it hung")
}

// Ray shows a line once that several processes wrote: the rank without one may have written it.
func TestJudge_LinesThatRayFolds_AccuseNobody(t *testing.T) {
	for _, fold := range []string{"[repeated 2x across cluster] (Ray deduplicates logs by default.)", "\x1b[32m [repeated 7x across cluster]\x1b[0m", ""} {
		var b strings.Builder
		for r := range int64(4) {
			text := fmt.Sprintf("[rank%d]: step 1\n", r)
			if r != 2 {
				text += versions["2.14"](inDefault(r))
			}
			for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
				fmt.Fprintf(&b, "(RayTrainWorker pid=%d, ip=10.0.0.1) %s%s\n", 100+r, l, fold)
			}
		}
		r := logs{"job.log": b.String()}.judge(t, Options{WorldSize: 4})
		if fold == "" {
			assertRoot(t, r, 2, model.ClassNotScheduled, "all_reduce 41")
			continue
		}
		require.Len(t, r.Roots, 1)
		assert.Empty(t, r.Roots[0].Finding.Ranks)
		assert.Equal(t, []int64{2}, r.Roots[0].Finding.Candidates)
		assert.Contains(t, evidence.Encode(r.Roots[0].Finding.Evidence), "RAY_DEDUP_LOGS=0")
	}
}

// Old lines name no group: two processes that are one rank in it are in two groups, not in one.
func TestJudge_OldLinesOfSubgroups_AreSeveralGroups(t *testing.T) {
	const killed = "Killed\n"
	for name, c := range map[string]struct {
		seqs   [2]int64
		member func(rank int64) (group, in int64)
		late   int64
	}{
		"blocks":          {[2]int64{20, 7}, func(r int64) (int64, int64) { return r / 4, r % 4 }, 6},
		"one number":      {[2]int64{7, 7}, func(r int64) (int64, int64) { return r / 4, r % 4 }, 6},
		"strides":         {[2]int64{20, 7}, func(r int64) (int64, int64) { return r % 2, r / 2 }, 3},
		"the first hangs": {[2]int64{7, 20}, func(r int64) (int64, int64) { return r / 4, r % 4 }, 2},
	} {
		for _, version := range []string{"1.13", "2.1"} {
			t.Run(name+" "+version, func(t *testing.T) {
				l, merged := logs{}, ""
				for r := range int64(8) {
					g, in := c.member(r)
					s := inDefault(r)
					s.in, s.seq = in, c.seqs[g]
					text := versions[version](s)
					if r == c.late {
						text = killed
					} else {
						merged += text
					}
					l[fmt.Sprintf("rank%d.log", r)] = "step 3\n" + text
				}
				r := l.judge(t, Options{WorldSize: 8})
				require.NotEmpty(t, r.Roots)
				f := &r.Roots[0].Finding
				assert.Equal(t, []any{model.Some(c.late), model.ClassProcessDead}, []any{f.Rank, f.Class})
				for i := range r.Roots[1:] {
					assert.Empty(t, r.Roots[i+1].Finding.Ranks)
				}

				r = logs{"job.log": merged}.judge(t, Options{})
				for i := range r.Roots {
					assert.Equal(t, model.ClassIncompleteEvidence, r.Roots[i].Finding.Class, "%+v", r.Roots[i].Finding)
				}
			})
		}
	}
	// Logs that have the same lines twice are of one group.
	l := files(versions["2.1"], 4, map[int64]string{2: killed})
	all := ""
	for _, text := range l {
		all += text
	}
	l["job.log"] = strings.ReplaceAll(all, killed, "")
	assertRoot(t, l.judge(t, Options{WorldSize: 4}), 2, model.ClassProcessDead, "all_reduce 41")
}

// A stage of a pipeline that ended is why the others wait for messages, and no other group's rank.
func TestJudge_PipelineStageEnded_IsTheRank(t *testing.T) {
	for name, c := range map[string]struct {
		stages []int64 // the ranks of the pipeline
		late   int64
		ops    []string
		world  int64
	}{
		"the last stage": {[]int64{0, 1, 2, 3}, 3, []string{"RECV", "RECV", "SEND", ""}, 4},
		"one between":    {[]int64{1, 3, 5, 7}, 5, []string{"RECV", "RECV", "", "RECV"}, 8},
		"batches":        {[]int64{1, 3, 5, 7}, 3, []string{"COALESCED", "", "COALESCED", "COALESCED"}, 8},
		"the first":      {[]int64{0, 1, 2, 3}, 0, []string{"", "RECV", "RECV", "RECV"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			l := logs{}
			for r := range c.world {
				in := slices.Index(c.stages, r)
				s := &stuckIn{rank: r, in: 0, group: fmt.Sprint(30 + r/2), desc: "dp", seq: 11, op: "_REDUCE_SCATTER_BASE", numIn: 4, out: 4}
				if in >= 0 {
					s = &stuckIn{rank: r, in: int64(in), group: "21", desc: "pp", seq: 40 - int64(in), op: c.ops[in], numIn: 4, out: 4}
				}
				l[fmt.Sprintf("rank%d.log", r)] = versions["2.14"](s)
			}
			l[fmt.Sprintf("rank%d.log", c.late)] = "Traceback (most recent call last):\nValueError: boom\n"
			r := l.judge(t, Options{})
			require.Len(t, r.Roots, 1)
			f := &r.Roots[0].Finding
			assert.Equal(t, []any{model.Some(c.late), model.ClassProcessDead, "pp"}, []any{f.Rank, f.Class, f.CommName})
			assert.Positive(t, f.WaitingCount.Or(0))
			assert.Contains(t, evidence.Encode(f.Evidence), "ValueError: boom")
			assert.Equal(t, desync.Hang, r.Verdict)

			l[fmt.Sprintf("rank%d.log", c.late)] = "step\n"
			r = l.judge(t, Options{})
			for i := range r.Roots {
				assert.NotEqual(t, model.ClassProcessDead, r.Roots[i].Finding.Class)
			}
		})
	}
}

// Slurm reports how a task ended; a task is a rank where the labels of srun are.
func TestJudge_SrunReportsAnEnd_IsTheRank(t *testing.T) {
	job := func(end string, label func(rank int64) int64) logs {
		var b strings.Builder
		for r := range int64(4) {
			text := fmt.Sprintf("[rank%d]: step 3\n", r)
			if r != 2 {
				text += versions["2.14"](inDefault(r))
			}
			for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
				fmt.Fprintf(&b, "%d: %s\n", label(r), l)
			}
		}
		return logs{"slurm-99.out": b.String() + "srun: error: n1: " + end + "\n"}
	}
	rank := func(r int64) int64 { return r }
	for _, end := range []string{"task 2: Out Of Memory", "task 2: Segmentation fault (core dumped)", "task 2: Segmentation fault", "task 2: Bus error", "task 2: Illegal instruction (core dumped)", "task 2: Killed"} {
		f := assertRoot(t, job(end, rank).judge(t, Options{WorldSize: 4}), 2, model.ClassProcessDead, "all_reduce 41")
		assert.Contains(t, evidence.Encode(f.Evidence), "srun: ")
	}
	for _, end := range []string{"task 2: Aborted (core dumped)", "tasks 0-3: Killed", "task 2: Exited with exit code 1", "task x: Bus error", "task 0: Segmentation fault"} {
		f := assertRoot(t, job(end, rank).judge(t, Options{WorldSize: 4}), 2, model.ClassNotScheduled, "all_reduce 41")
		assert.Contains(t, f.Action, "if the job still runs")
	}
	r := job("task 1: Out Of Memory", func(r int64) int64 { return r / 2 }).judge(t, Options{WorldSize: 4})
	for i := range r.Roots {
		assert.NotEqual(t, model.ClassProcessDead, r.Roots[i].Finding.Class, "the tasks are nodes")
	}
}
