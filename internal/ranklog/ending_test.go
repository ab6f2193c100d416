// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

const trace = "Traceback (most recent call last):\n  File \"train.py\", line 3, in step\n"

// named are the ranks that roots name, and the candidates of the first root without a rank.
func named(r *Result) (ranks, candidates []int64) {
	for i := range r.Roots {
		f := &r.Roots[i].Finding
		if ranks = append(ranks, f.Ranks...); len(f.Ranks) == 0 && candidates == nil {
			candidates = f.Candidates
		}
	}
	slices.Sort(ranks)
	return ranks, candidates
}

// beside judges eight ranks, of which one wrote a text and another nothing.
func beside(t *testing.T, text string) (ranks, candidates []int64) {
	t.Helper()
	return named(files(versions["2.14"], 8, map[int64]string{4: "step 39\n" + text, 2: "step 39\n"}).judge(t, Options{WorldSize: 8}))
}

// alone judges eight ranks, of which one wrote a text and all others wait.
func alone(t *testing.T, text string) *model.Finding {
	t.Helper()
	r := files(versions["2.14"], 8, map[int64]string{4: "step 39\n" + text}).judge(t, Options{WorldSize: 8})
	require.Len(t, r.Roots, 1)
	assert.Equal(t, model.Some(int64(4)), r.Roots[0].Finding.Rank)
	return &r.Roots[0].Finding
}

// The end of another rank shows itself as whatever a connection, a wait or a launcher raises.
func TestJudge_ErrorsOfWhatIsShared_AreResults(t *testing.T) {
	for _, e := range []string{
		"RuntimeError: [enforce fail at /gloo/transport/tcp/pair.cc:446] Read timeout [10.0.0.4]:4711",
		"RuntimeError: Connection was likely closed. Did the remote server shutdown or crash?",
		"TimeoutError: [Errno 110] Connection timed out",
		"asyncio.exceptions.TimeoutError",
		"asyncio.exceptions.CancelledError",
		"torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
		"torch.distributed.DistQueueEmptyError: queue is empty",
		"ray.exceptions.OwnerDiedError: Failed to retrieve object",
		"ray.exceptions.WorkerCrashedError",
		"vllm.engine.async_llm_engine.AsyncEngineDeadError: Background loop is not running.",
		"grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that ended",
		"urllib3.exceptions.MaxRetryError: HTTPSConnectionPool(host='s3', port=443)",
		"threading.BrokenBarrierError",
		"zmq.error.ZMQError: Connection refused by peer",
		"multiprocessing.context.ProcessError: x",
		"OSError: [Errno 32] Broken pipe",
		"RuntimeError: Pin memory thread exited unexpectedly",
		"RuntimeError: stopping, since preemption has interrupted the job",
		"Exception: trainer 3 terminated",
		"RuntimeError: NCCL error: unhandled cuda error, NCCL version 2.21.5",
		"RuntimeError: DataLoader worker (pid 4) is killed by signal: Interrupt.",
	} {
		ranks, candidates := beside(t, trace+e+"\n")
		assert.Empty(t, ranks, e)
		assert.ElementsMatch(t, []int64{2, 4}, candidates, e)

		ranks, candidates = named(files(versions["2.14"], 8, map[int64]string{4: trace + e + "\n"}).judge(t, Options{WorldSize: 8}))
		assert.Empty(t, ranks, e)
		assert.Equal(t, []int64{4}, candidates, e)
	}
}

// An error that does not say whether the program raised it is a candidate beside a silent rank, the
// first one, and the reason with less certainty where all others wait.
func TestJudge_UnclearErrors_DecideOnlyAlone(t *testing.T) {
	for _, e := range []string{
		"RuntimeError: boom",
		"OSError: [Errno 5] Input/output error",
		"Exception: x",
		"ModuleNotFoundError: No module named 'apex'\nPlease install it from https://github.com/NVIDIA/apex",
		"SystemError: <built-in method x> returned NULL",
		"omegaconf.errors.ConfigAttributeError: Missing key lr",
		"ValueError: the socket has no rank",
	} {
		ranks, candidates := beside(t, trace+e+"\n")
		assert.Empty(t, ranks, e)
		assert.Equal(t, []int64{4, 2}, candidates, e)

		f := alone(t, trace+e+"\n")
		assert.Equal(t, model.ClassProcessDead, f.Class, e)
		assert.Less(t, f.Confidence, 0.8, e)

		l := files(versions["2.14"], 8, map[int64]string{4: trace + e + "\n"})
		delete(l, "rank2_stderr.log")
		ranks, candidates = named(l.judge(t, Options{WorldSize: 8}))
		assert.Empty(t, ranks, "a rank without a log is silent")
		assert.Equal(t, []int64{4, 2}, candidates)

		l = files(versions["2.14"], 8, map[int64]string{4: trace + e + "\n", 2: fmt.Sprintf(outOfMemory, 2, 2)})
		ranks, _ = named(l.judge(t, Options{WorldSize: 8}))
		assert.Equal(t, []int64{2}, ranks, "an own cause is before it")
	}
}

// An error of a destructor, a thread or a task does not end its process.
func TestJudge_ErrorsThatEndNoProcess_AreNoOwnCause(t *testing.T) {
	for _, line := range []string{
		"Exception ignored in: <function It.__del__ at 0x7f12>", "Exception ignored in atexit callback: <function f at 0x7f12>",
		"Exception in thread Thread-3 (prefetch):", "Task exception was never retrieved",
	} {
		text := line + "\n" + trace + "AssertionError: can only test a child\n"
		ranks, candidates := beside(t, text)
		assert.Empty(t, ranks, line)
		assert.ElementsMatch(t, []int64{2, 4}, candidates, line)

		ranks, _ = beside(t, trace+"KeyError: 3\n"+text)
		assert.Equal(t, []int64{4}, ranks, "an error before it is the end")
		ranks, _ = beside(t, text+"lr 0.1\n"+trace+"KeyError: 3\n")
		assert.Equal(t, []int64{4}, ranks, "an error behind it is the end")
	}
}

// What the program, its data, memory, the device or a signal raises is the end of its rank, be
// another one silent or not.
func TestJudge_OwnCauses_AreNamedBesideASilentRank(t *testing.T) {
	for name, text := range map[string]string{
		"data":              trace + "ValueError: Caught ValueError in DataLoader worker process 0.\nOriginal " + trace + "ValueError: bad sample 3\n",
		"a key":             trace + "KeyError: 'timeout'\n",
		"a shape":           trace + "IndexError: index 7 is out of bounds for dimension 0 with size 7\n",
		"an own type":       trace + "__main__.BadShard: 17\n__main__.BadShardError: 17\n",
		"an assertion":      trace + "AssertionError\n",
		"a file":            trace + "FileNotFoundError: [Errno 2] No such file or directory: '/data/shard-3.bin'\n",
		"device memory":     trace + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB\n",
		"old device memory": trace + "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total capacity; 9.79 GiB reserved in total by PyTorch)\n",
		"host memory":       trace + "MemoryError\n",
		"a device":          trace + "RuntimeError: CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n\n",
		"a launch timeout":  trace + "torch.AcceleratorError: CUDA error: the launch timed out and was terminated\nSearch for `cudaErrorLaunchTimeout' in https://docs.nvidia.com/cuda for more information.\n",
		"Xid":               "[ 99.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus.\n",
		"a fault":           "Fatal Python error: Bus error\n\nCurrent thread 0x00007f (most recent call first):\n  File \"a.py\", line 3 in f\n",
		"a core":            "Floating point exception (core dumped)\n",
		"the OOM killer":    "Killed\n",
		"a killed loader":   trace + "RuntimeError: DataLoader worker (pid 4) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n",
	} {
		t.Run(name, func(t *testing.T) {
			ranks, _ := beside(t, text)
			assert.Equal(t, []int64{4}, ranks)
			f := alone(t, text)
			assert.Equal(t, model.ClassProcessDead, f.Class)
			assert.Greater(t, f.Confidence, 0.9)
		})
	}
}

// Whatever a process writes that runs shows that it caught the error before.
func TestJudge_OrdinaryLinesAfterAnError_AreNoEnd(t *testing.T) {
	for name, after := range map[string]string{
		"one step":      "step 40 loss 2.1\n",
		"a table":       "40 2.31 0.0003\n",
		"JSON":          "{\"tokens\": 81920, \"lr\": 0.0001}\n",
		"a set-up":      "loaded 8 shards in 3.1 s\n",
		"a key":         "lr: 0.0003\n",
		"a heading":     "### evaluation ###\n",
		"a list":        "[2.1, 2.2]\n",
		"an evaluation": "eval/ppl 12.3 eval/acc 0.31\n",
		"a remark":      "cache is rebuilt\n",
		"a retry":       "batch failed, retrying with 8\n",
		"a log line":    "2026-11-16 10:00:00,123 INFO tokens/s 31000\n",
		"a bar":         " 3%|# | 24/1752 [01:08<1:22:56,  2.88s/it]\r 4%|# | 25/1752 [01:09<1:22:56,  2.88s/it]\n",
		"error rates":   "top1 error 0.31\ntop1 error 0.29\n",
		"then a thread": "lr 0.1\nThread 0x12 (most recent call first):\n",
	} {
		for _, e := range []string{trace + "torch.OutOfMemoryError: CUDA out of memory.\n", trace + "ValueError: bad sample\n", "CUDA error: an illegal memory access was encountered\n", "Killed\n"} {
			t.Run(name+" "+strings.TrimSpace(e[strings.LastIndexByte(e[:len(e)-1], '\n')+1:]), func(t *testing.T) {
				ranks, candidates := beside(t, e+after)
				assert.Empty(t, ranks)
				assert.ElementsMatch(t, []int64{2, 4}, candidates)
				assert.Equal(t, model.ClassNotScheduled, alone(t, e+after).Class)

				ranks, _ = beside(t, e+after+trace+"KeyError: 3\n")
				assert.Equal(t, []int64{4}, ranks, "an error behind it is the end")
			})
		}
	}
}

// An error that the ranks that wait have survived is no end of others, whatever its text.
func TestJudge_TypesThatWaitingRanksWrote_AreNoEnd(t *testing.T) {
	for name, text := range map[string]string{
		"paths":          trace + "FileNotFoundError: [Errno 2] No such file or directory: '/scratch/%s/a'\n",
		"memory":         trace + "torch.OutOfMemoryError: CUDA out of memory. Tried %s GiB\n",
		"an old module":  trace + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried %s GiB\n",
		"a compiler":     trace + "torch._dynamo.exc.Unsupported%[1]sError: call\ntorch._dynamo.exc.UnsupportedError: %[1]s\n",
		"without traces": "torch.OutOfMemoryError: CUDA out of memory. Tried %s GiB\n",
	} {
		t.Run(name, func(t *testing.T) {
			of := func(rank int64) string { return fmt.Sprintf(text, strings.Repeat("x", int(rank)+1)) }
			l := files(versions["2.14"], 8, map[int64]string{2: of(2), 4: of(4)})
			for r := range int64(8) {
				if r != 2 && r != 4 {
					l[fmt.Sprintf("rank%d_stderr.log", r)] = of(r) + versions["2.14"](inDefault(r))
				}
			}
			ranks, candidates := named(l.judge(t, Options{WorldSize: 8}))
			assert.Empty(t, ranks)
			assert.Equal(t, []int64{2, 4}, candidates)
		})
	}
}

// An error that a line mentions beside something else is not one that ends a process.
func TestJudge_ErrorsInOrdinaryLines_AreNoEnd(t *testing.T) {
	for _, line := range []string{
		"torch.OutOfMemoryError: CUDA out of memory. (skipped)",
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried 2 GiB (profiling run, expected)",
		"CUDA error: invalid device function (trying the next kernel)",
		" 50%|##  | 5/10 [00:01<00:00, 3.1it/s] torch.OutOfMemoryError: CUDA out of memory.",
		"trial 3/9 [00:02, 1.2s/it] OutOfMemoryError: pruned",
		"best batch size 16 (OutOfMemoryError: 32)",
		"last NVRM: Xid of this node: none",
		"GPU 0: uncorrectable ECC error encountered: 0 times",
	} {
		ranks, candidates := beside(t, line+"\n")
		assert.Empty(t, ranks, line)
		assert.ElementsMatch(t, []int64{2, 4}, candidates, line)
	}
}

// Where a process was ended by order no signal or error afterwards is its own.
func TestJudge_EndsByOrder_AreNoReason(t *testing.T) {
	for _, order := range []string{
		"[rank4]: got SIGTERM, writing a checkpoint",
		"INFO: signal 15 caught in train.py",
		"srun: forcing job termination",
		"slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-16T10:00:00 DUE TO TIME LIMIT ***",
		"W1116 10:00:30 api.py:900] Sending process 4711 closing signal SIGTERM",
		"Received 15 death signal, shutting down workers",
		"Terminated",
		"*** SIGINT received by PID 4711 (TID 4711) on cpu 3 ***",
		"Preemption notice received",
	} {
		for _, end := range []string{
			"Killed\n", "Segmentation fault (core dumped)\n", "Fatal Python error: Segmentation fault\n\nThread 0x12 (most recent call first):\n", "Bus error\n",
			trace + "ValueError: I/O on a queue that is gone\n", trace + "torch.OutOfMemoryError: CUDA out of memory.\n",
		} {
			ranks, candidates := beside(t, order+"\n"+end)
			assert.Empty(t, ranks, order+" "+end)
			assert.ElementsMatch(t, []int64{2, 4}, candidates)

			ranks, _ = beside(t, end+order+"\n")
			assert.Equal(t, []int64{4}, ranks, "an order behind it changes nothing: "+order+" "+end)
		}
	}
	for _, line := range []string{
		"installed a handler for SIGTERM", "a checkpoint is written when SIGTERM is received", "SIGTERM grace period: 30 s",
		"SIGTERM received, ignored by the notebook\n" + strings.Repeat("lr 0.1\n", 2*grace),
	} {
		ranks, _ := beside(t, line+"\nKilled\n")
		assert.Equal(t, []int64{4}, ranks, line)
	}
	ranks, _ := beside(t, "Fatal Python error: _enter_buffered_busy: could not acquire lock for <_io.BufferedWriter name='<stderr>'> at interpreter shutdown, possibly due to daemon threads\nPython runtime state: finalizing (tstate=0x1)\n")
	assert.Empty(t, ranks)
}

// In a log that ranks write together the first end is the reason of those behind it.
func TestJudge_SeveralEndsInOneLog_TheFirstIsTheReason(t *testing.T) {
	log := func(apart bool, ends ...string) logs {
		var b strings.Builder
		for n := range 2 {
			for r := range int64(8) {
				if apart && n == 1 {
					break
				}
				fmt.Fprintf(&b, "[rank%d]: step %d\n", r, n)
			}
		}
		for _, e := range ends {
			b.WriteString(e)
		}
		for r := range int64(8) {
			if r != 2 && r != 4 {
				b.WriteString(versions["2.14"](inDefault(r)))
			}
		}
		return logs{"job.out": b.String()}
	}
	of := func(rank int64, e string) string {
		return fmt.Sprintf("[rank%[1]d]: Traceback (most recent call last):\n[rank%[1]d]: %[2]s\n", rank, e)
	}
	for name, c := range map[string]struct {
		ends []string
		want []int64
	}{
		"memory, then code": {[]string{of(4, "torch.OutOfMemoryError: CUDA out of memory."), of(2, "KeyError: 3")}, []int64{4}},
		"code, then memory": {[]string{of(2, "KeyError: 3"), of(4, "torch.OutOfMemoryError: CUDA out of memory.")}, []int64{2}},
		"two of one type":   {[]string{of(4, "ValueError: a"), of(2, "ValueError: b")}, []int64{4}},
		"a result before":   {[]string{of(2, "ConnectionResetError: x"), of(4, "ValueError: b")}, []int64{4}},
	} {
		t.Run(name, func(t *testing.T) {
			ranks, _ := named(log(false, c.ends...).judge(t, Options{WorldSize: 8}))
			assert.Equal(t, c.want, ranks)
		})
	}
	l := files(versions["2.14"], 8, map[int64]string{2: of(2, "KeyError: 3"), 4: of(4, "ValueError: b")})
	ranks, _ := named(l.judge(t, Options{WorldSize: 8}))
	assert.Equal(t, []int64{2, 4}, ranks, "two logs have no order")
	all := ""
	for r := range int64(8) {
		all += strings.ReplaceAll(l[fmt.Sprintf("rank%d_stderr.log", r)], "step 40", fmt.Sprintf("[rank%d]: step 40", r))
	}
	ranks, _ = named(logs{"all.log": all}.judge(t, Options{WorldSize: 8}))
	assert.Equal(t, []int64{2, 4}, ranks, "logs that were put together have none either")
}

// srun reports ends in their order. It kills the other tasks itself, and says so of several or after
// its order.
func TestJudge_SrunReportsSeveralEnds_TheFirstIsTheReason(t *testing.T) {
	for reports, want := range map[string][]int64{
		"task 1: Killed\ntask 2: Segmentation fault":                           {1},
		"task 2: Segmentation fault\ntask 1: Killed":                           {2},
		"task 2: Bus error\ntask 1: Out Of Memory":                             {2},
		"task 1: Killed\ntasks 0,2-3: Killed":                                  {1},
		"tasks 0,3: Killed\ntask 1: Killed":                                    nil,
		"task 1: Killed\ntask 2: Killed":                                       nil,
		"Job step aborted: Waiting up to 32 seconds.\ntask 1: Killed":          nil,
		"Job step aborted: Waiting up to 32 s.\ntask 1: Segmentation fault":    nil,
		"task 1: Killed\nJob step aborted: Waiting up to 32 s\ntask 2: Killed": {1},
		"task 1: Illegal instruction\ntask 1: Killed":                          {1},
	} {
		var b strings.Builder
		for r := range int64(4) {
			text := fmt.Sprintf("[rank%d]: step 3\n", r)
			if r != 1 && r != 2 {
				text += versions["2.14"](inDefault(r))
			}
			for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
				fmt.Fprintf(&b, "%d: %s\n", r, l)
			}
		}
		for _, l := range strings.Split(reports, "\n") {
			of := "srun: error: n1: "
			if strings.HasPrefix(l, "Job") {
				of = "srun: "
			}
			b.WriteString(of + l + "\n")
		}
		ranks, _ := named(logs{"slurm-9.out": b.String()}.judge(t, Options{WorldSize: 4}))
		assert.Equal(t, want, ranks, reports)
	}
}
