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
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

const (
	barrierOf0 = "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"train.py\", line 3, in <module>\n[rank0]: RuntimeError: %s\n"
	wrapperOf  = "ProcessGroupWrapper: Monitored Barrier encountered error running collective: CollectiveFingerPrint(SequenceNumber=9, OpType=ALLREDUCE, TensorShape=[4]). Error: \n"
)

// Rank 0 names the ranks that did not reach a barrier of Gloo, where its group has all ranks.
func TestJudge_RanksThatMissABarrier_AreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []int64
	}{
		"several":            {"[Rank 0]: Ranks 3, 5 failed to pass monitoredBarrier in 30000 ms", []int64{3, 5}},
		"one of all":         {"[Rank 0]: Ranks 3 failed to pass monitoredBarrier in 30000 ms", []int64{3}},
		"within a wrapper":   {wrapperOf + "[rank0]: [Rank 0]: Ranks 6 failed to pass monitoredBarrier in 30000 ms", []int64{6}},
		"waiting for":        {"Rank 0 timed out waiting for rank(s) 3, 5 in monitoredBarrier", []int64{3, 5}},
		"the first in order": {"[Rank 0]: Rank 3 failed to pass monitoredBarrier in 30000 ms\n Original exception: \n[gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 30000ms for recv operation to complete", []int64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			others := ""
			for r := int64(1); r < 8; r++ {
				if r != 3 && r != 5 && r != 6 {
					others += fmt.Sprintf("[rank%[1]d]: Traceback (most recent call last):\n[rank%[1]d]: RuntimeError: Rank %[1]d successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n", r)
				}
			}
			for form, l := range map[string]logs{
				"a log":             {"job.out": fmt.Sprintf(barrierOf0, c.text)},
				"with the others":   {"job.out": fmt.Sprintf(barrierOf0, c.text) + others},
				"no marks":          {"rank0.log": strings.ReplaceAll(fmt.Sprintf(barrierOf0, c.text), "[rank0]: ", "")},
				"a line of its own": {"rank0.log": "[E1116 10:00:00.1 ProcessGroupGloo.cpp:138] " + strings.TrimPrefix(c.text, wrapperOf) + "\n"},
			} {
				s := Sniff(strings.NewReader(l["job.out"] + l["rank0.log"]))
				assert.True(t, s, form)
				r := l.judge(t, Options{WorldSize: 8})
				require.NotEmpty(t, r.Roots, form)
				ranks, candidates := named(r)
				if form != "with the others" { // of which ranks the group is, is not known
					assert.Empty(t, ranks, form)
					assert.Subset(t, candidates, c.want, form)
					require.NotEmpty(t, r.Remarks, form)
					assert.Contains(t, r.Remarks[0], "did not reach monitoredBarrier", form)
					continue
				}
				assert.Equal(t, c.want, ranks, form)
				assert.Equal(t, model.ClassNotScheduled, r.Roots[0].Finding.Class, form)
				assert.Contains(t, r.Roots[0].Finding.Op, "barrier", form)
			}
		})
	}
}

// Gloo counts ranks in the group. Of a group whose first rank is rank 0 the line and its mark agree, and a rank in the
// group may be another one of the job.
func TestJudge_BarrierOfAGroupOfSomeRanks_NamesNoRank(t *testing.T) {
	const came = "Traceback (most recent call last):\nRuntimeError: Rank %d successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n"
	failed := strings.ReplaceAll(fmt.Sprintf(barrierOf0, "[Rank 0]: Ranks 2 failed to pass monitoredBarrier in 2000 ms"), "[rank0]: ", "")
	for name, l := range map[string]logs{
		"every second rank":             {"rank0.log": failed, "rank2.log": fmt.Sprintf(came, 1), "rank6.log": fmt.Sprintf(came, 3)},
		"rank 0 alone wrote":            {"rank0.log": failed, "rank1.log": "step 3\n", "rank2.log": "step 3\n", "rank6.log": "step 3\n"},
		"ranks 0, 1, 4, 5":              {"rank0.log": failed, "rank1.log": fmt.Sprintf(came, 1), "rank5.log": "step 3\n"},
		"a merged log of ranks 0, 3, 5": {"job.out": strings.ReplaceAll(failed, "RuntimeError", "[rank0]: RuntimeError") + "[rank3]: RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := l.judge(t, Options{WorldSize: 8})
			ranks, candidates := named(r)
			assert.Empty(t, ranks)
			if len(candidates) > 0 {
				assert.Contains(t, candidates, int64(4), "it may be rank 2 of the group")
			}
			for _, root := range r.Roots {
				assert.LessOrEqual(t, root.Finding.WaitingCount.Or(0), int64(1), "no others are known to be in the barrier")
			}
		})
	}

	// Operations, too, are compared within a group.
	for name, l := range map[string]logs{
		"every second rank": {"rank0.log": mismatchOf(fingerprint(0, 9, "ALLREDUCE", "4"), fingerprint(2, 9, "BROADCAST", "4"), 0), "rank2.log": mismatchOf(fingerprint(1, 9, "ALLREDUCE", "4"), fingerprint(2, 9, "BROADCAST", "4"), 2)},
		"one log":           {"rank0.log": mismatchOf(fingerprint(0, 9, "ALLREDUCE", "4"), fingerprint(2, 9, "BROADCAST", "4"), 0)},
		"ranks 0, 1, 4, 5":  {"rank0.log": mismatchOf(fingerprint(0, 9, "ALLREDUCE", "4"), fingerprint(2, 9, "BROADCAST", "4"), 0), "rank1.log": mismatchOf(fingerprint(1, 9, "ALLREDUCE", "4"), fingerprint(2, 9, "BROADCAST", "4"), 1)},
	} {
		r := l.judge(t, Options{WorldSize: 8})
		assertNobody(t, r)
		assert.Contains(t, r.MayRun+strings.Join(r.Remarks, " "), "rank 2", name)
	}
}

// A rank that missed a barrier since it ended is the rank with its error.
func TestJudge_RankThatMissedABarrierAndEnded_HasItsError(t *testing.T) {
	l := logs{"job.out": fmt.Sprintf(barrierOf0, "[Rank 0]: Ranks 3 failed to pass monitoredBarrier in 30000 ms") + fmt.Sprintf(outOfMemory, 3, 3)}
	f := assertRoot(t, l.judge(t, Options{WorldSize: 8}), 3, model.ClassProcessDead, "barrier 1")
	assert.Contains(t, evidence.Encode(f.Evidence), "out of memory")
}

// Where a barrier failed for another reason no rank is named.
func TestJudge_BarriersThatNameNobody_AccuseNobody(t *testing.T) {
	one := fmt.Sprintf(barrierOf0, "[Rank 0]: Ranks 3 failed to pass monitoredBarrier in 30000 ms")
	for name, text := range map[string]string{
		"a timeout without ranks": fmt.Sprintf(barrierOf0, "Rank 0 timed out in monitoredBarrier after 30000 ms.\n[rank0]: Successfully processed ranks: 1, 2"),
		"a closed connection":     "W1116 10:00:00 api.py:900] Sending process 4711 closing signal SIGTERM\n" + fmt.Sprintf(barrierOf0, "[Rank 0]: Rank 3 failed to pass monitoredBarrier in 30000 ms\n Original exception: \n[pair.cc:598] Connection closed by peer [10.0.0.4]:4711"),
		"a group of some ranks":   strings.ReplaceAll(one, "[rank0]", "[rank4]"),
		"a folder of a rank":      one,
		"a label of a task":       "4: " + strings.ReplaceAll(strings.TrimSuffix(strings.ReplaceAll(one, "[rank0]: ", ""), "\n"), "\n", "\n4: ") + "\n",
		"a label with a rank":     "[pod/a/b] " + strings.ReplaceAll(strings.TrimSuffix(strings.ReplaceAll(one, "[rank0]: ", ""), "\n"), "\n", "\n[pod/a/b] ") + "\n[pod/a/b] [rank6]: x\n",
		"the program went on":     one + "[rank0]: step 41 loss 2.1\n[rank0]: step 42 loss 2.0\n",
		"of an earlier life":      one + "api.py:882] [default] worker group FAILED. 3/3 attempts left; will restart worker group\n[rank0]: step 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := "job.out"
			if name == "a folder of a rank" {
				file, text = "rank5.out", strings.ReplaceAll(text, "[rank0]: ", "")
			}
			r := logs{file: text}.judge(t, Options{WorldSize: 8})
			ranks, _ := named(r)
			assert.Empty(t, ranks)
			assert.NotEqual(t, desync.Healthy, r.Verdict)
		})
	}
}

func fingerprint(rank, seq int64, op, shape string) string {
	return fmt.Sprintf("Rank %d is running collective: CollectiveFingerPrint(SequenceNumber=%d, OpType=%s, TensorShape=[%s], TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default), requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt)))", rank, seq, op, shape)
}

// mismatchOf is the error of a rank that compares its operation with that of another one.
func mismatchOf(own, other string, rank int64) string {
	return fmt.Sprintf("[rank%[1]d]: Traceback (most recent call last):\n[rank%[1]d]: RuntimeError: Detected mismatch between collectives on ranks. %[2]s, but %[3]s.Collectives differ in the following aspects: \t Op type: ALLREDUCEvs BROADCAST\n", rank, own, other)
}

// The rank that calls another operation than most is named.
func TestJudge_MismatchOfCollectives_NamesTheOddRank(t *testing.T) {
	for name, c := range map[string]struct {
		own, odd func(rank int64) string
		class    string
	}{
		"operations": {func(r int64) string { return fingerprint(r, 9, "ALLREDUCE", "20, 10") }, func(r int64) string { return fingerprint(r, 9, "BROADCAST", "1") }, model.ClassMismatchOp},
		"a short print": {func(r int64) string { return fingerprint(r, 9, "ALLREDUCE", "20, 10") }, func(r int64) string {
			return fmt.Sprintf("Rank %d is running collective: CollectiveFingerPrint(SequenceNumber=0OpType=GATHER)", r)
		}, model.ClassMismatchOp},
		"an old version": {func(r int64) string {
			return fmt.Sprintf("Rank %d is running collective: CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[4])", r)
		}, func(r int64) string { return fmt.Sprintf("Rank %d is running collective: REDUCE", r) }, model.ClassMismatchOp},
		"sizes":         {func(r int64) string { return fingerprint(r, 3104, "ALLREDUCE", "195812480") }, func(r int64) string { return fingerprint(r, 3104, "ALLREDUCE", "51123456") }, model.ClassMismatchSize},
		"sizes, gather": {func(r int64) string { return fingerprint(r, 1, "_ALLGATHER_BASE", "359, 1, 16") }, func(r int64) string { return fingerprint(r, 1, "_ALLGATHER_BASE", "360, 1, 16") }, model.ClassMismatchSize},
	} {
		t.Run(name, func(t *testing.T) {
			text := ""
			for r := range int64(4) {
				if r != 2 {
					text += mismatchOf(c.own(r), c.odd(2), r)
				}
			}
			r := logs{"job.out": text}.judge(t, Options{WorldSize: 4})
			require.Len(t, r.Roots, 1)
			assert.Equal(t, []any{model.Some(int64(2)), c.class}, []any{r.Roots[0].Finding.Rank, r.Roots[0].Finding.Class})
			assert.Equal(t, desync.Hang, r.Verdict)

			// Two ranks alone do not show which of them is right.
			r = logs{"job.out": mismatchOf(c.own(0), c.odd(1), 0)}.judge(t, Options{WorldSize: 2})
			require.Len(t, r.Roots, 1)
			assert.False(t, r.Roots[0].Finding.Rank.OK)
		})
	}
}

// What ranks report of others is said beside what watchdogs report.
func TestJudge_StatementsBesideTimeOuts_AreSaid(t *testing.T) {
	l := files(versions["2.14"], 8, map[int64]string{3: fmt.Sprintf(outOfMemory, 3, 3)})
	l["launcher.log"] = fmt.Sprintf(barrierOf0, "[Rank 0]: Ranks 5 failed to pass monitoredBarrier in 30000 ms")
	r := l.judge(t, Options{WorldSize: 8})
	assertRoot(t, r, 3, model.ClassProcessDead, "all_reduce 41")
	require.Len(t, r.Remarks, 1)
	assert.Contains(t, r.Remarks[0], "Rank 0 reports that rank 5 did not reach monitoredBarrier")
}

func startOf(rank, world, joined int64) string {
	return fmt.Sprintf("Traceback (most recent call last):\n  File \"x.py\", line 3\nRuntimeError: Timed out initializing process group in store based barrier on rank: %d, for key: store_based_barrier_key:1 (world_size=%d, worker_count=%d, timeout=0:30:00)\n", rank, world, joined)
}

// Ranks that do not come to the start of a group are candidates, and those that wait there are not.
func TestJudge_StartOfAGroupTimedOut_MissingRanksAreCandidates(t *testing.T) {
	for name, c := range map[string]struct {
		world int64
		came  []int64
		want  []int64
	}{
		"one of two":          {2, []int64{0}, []int64{1}},
		"half":                {8, []int64{7, 5, 4, 6}, []int64{0, 1, 2, 3}},
		"one log of the rest": {4, []int64{2, 0, 3}, []int64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			text := ""
			for _, r := range c.came {
				text += startOf(r, c.world, int64(len(c.came)))
			}
			assert.True(t, Sniff(strings.NewReader(text)))
			r := logs{"job.out": text}.judge(t, Options{})
			ranks, candidates := named(r)
			assert.Empty(t, ranks)
			assert.ElementsMatch(t, c.want, candidates)

			r = logs{"job.out": text, fmt.Sprintf("rank%d.log", c.want[0]): fmt.Sprintf(outOfMemory, c.want[0], c.want[0])}.judge(t, Options{})
			require.NotEmpty(t, r.Roots)
			assert.Equal(t, []any{model.Some(c.want[0]), model.ClassProcessDead}, []any{r.Roots[0].Finding.Rank, r.Roots[0].Finding.Class})
		})
	}
}

// What names no rank that is the cause is said.
func TestJudge_ReportsThatDecideNothing_AreSaid(t *testing.T) {
	for text, want := range map[string]string{
		startOf(0, 2, 4): "4 processes came for 2 places",
		"torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/3 clients joined.\n":                                                                                                                                                                "1 of 3 processes came",
		"EI0002: [PID: 29] The Notify register has not received the Notify record from remote rank: [24]. base information: [streamID:[109]], rankSize[32], rankId[25 24]]\n":                                                                                                      "rank 24 of that group",
		"[RANK 1] 10:29 [ERROR] Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(OpType=ALLGATHER), but Rank 7 is running collective: CollectiveFingerPrint(OpType=REDUCE).\n[RANK 0] 10:30 [INFO] unloaded\n[rank7]: step 3\n": "calls ALLGATHER and rank 7 calls REDUCE",
		"[rank4]: Traceback (most recent call last):\n[rank4]: RuntimeError: [Rank 0]: Ranks 3 failed to pass monitoredBarrier in 30 ms\n":                                                                                                                                         "rank 3 of its group did not reach",
		"[rank4]: Traceback (most recent call last):\n[rank4]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(OpType=REDUCE), but Rank 0 is running collective: BARRIER\n":                                      "calls REDUCE and rank 0 calls BARRIER",
	} {
		assert.True(t, Sniff(strings.NewReader(text)), text)
		r := logs{"job.out": text}.judge(t, Options{WorldSize: 8})
		assertNobody(t, r)
		assert.Equal(t, desync.NoData, r.Verdict, text)
		assert.Contains(t, r.MayRun, want)
	}
	for _, text := range []string{
		"Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 (world_size=4, worker_count=2, timeout=0:30:00)\n",
		"3 clients joined\n", "step 3/4 clients joined the federation\n",
	} {
		assert.False(t, Sniff(strings.NewReader(text)), text)
	}
}

// Ray names the process of a worker that died; its label has the rank.
func TestJudge_WorkerThatRayReportsDead_IsTheRank(t *testing.T) {
	const dead = "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker IP address: 10.0.0.1 Worker port: 41811 Worker PID: %d Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.\n"
	for name, label := range map[string]string{"plain": "(WorkerDict pid=%d) ", "an address": "(WorkerDict pid=%d, ip=10.0.0.1) ", "colours": "\x1b[36m(W pid=%d)\x1b[0m ", "a clipboard": "[36m(W pid=%d)[0m "} {
		t.Run(name, func(t *testing.T) {
			job := ""
			for r := range int64(4) {
				of := fmt.Sprintf(label, 900+r)
				job += of + fmt.Sprintf("[rank%d]: step 40\n", r)
				if r != 2 {
					job += of + strings.ReplaceAll(strings.TrimSuffix(versions["2.14"](inDefault(r)), "\n"), "\n", "\n"+of) + "\n"
				}
			}
			f := assertRoot(t, logs{"job.out": job + fmt.Sprintf(dead, 902)}.judge(t, Options{WorldSize: 4}), 2, model.ClassProcessDead, "all_reduce 41")
			assert.LessOrEqual(t, f.Confidence, 0.7, "what ended it is not known")
			assert.Contains(t, evidence.Encode(f.Evidence), "its worker died")

			r := logs{"job.out": job + fmt.Sprintf(dead, 901)}.judge(t, Options{WorldSize: 4})
			ranks, _ := named(r)
			assert.NotContains(t, ranks, int64(1), "it waits")
		})
	}
}
