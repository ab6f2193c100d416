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

// stuckIn is a rank that waits in an operation.
type stuckIn struct {
	rank, in     int64 // in: its rank in the group
	group, desc  string
	seq          int64
	op           string
	numIn, out   int64
	enqueued     int64 // 0: seq
	notCompleted int64 // completed is seq-1 less this
}

func (s *stuckIn) work() string {
	return fmt.Sprintf("WorkNCCL(SeqNum=%d, OpType=%s, NumelIn=%d, NumelOut=%d, Timeout(ms)=600000) ran for 600%03d milliseconds before timing out.",
		s.seq, s.op, s.numIn, s.out, s.rank%1000)
}

func (s *stuckIn) numbers() (enqueued, completed int64) {
	return max(s.enqueued, s.seq), s.seq - 1 - s.notCompleted
}

// versions write what one rank's watchdog writes, as PyTorch does.
var versions = map[string]func(s *stuckIn) string{
	"1.13": func(s *stuckIn) string {
		return fmt.Sprintf("[E ProcessGroupNCCL.cpp:821] [Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=%s, Timeout(ms)=600000) ran for 600123 milliseconds before timing out.\n", s.in, s.seq, s.op)
	},
	"2.1": func(s *stuckIn) string {
		return fmt.Sprintf("[E ProcessGroupNCCL.cpp:475] [Rank %d] Watchdog caught collective operation timeout: %s\n[E ProcessGroupNCCL.cpp:489] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.\n"+
			"terminate called after throwing an instance of 'std::runtime_error'\n  what():  [Rank %d] NCCL watchdog thread terminated with exception: [Rank %d] Watchdog caught collective operation timeout: %s\n", s.in, s.work(), s.in, s.in, s.work())
	},
	"2.3": func(s *stuckIn) string {
		e, c := s.numbers()
		return fmt.Sprintf("[rank%d]:[E ProcessGroupNCCL.cpp:563] [Rank %d] Watchdog caught collective operation timeout: %s\n[rank%d]:[E ProcessGroupNCCL.cpp:1537] [PG %s Rank %d] Timeout at NCCL work: %d, last enqueued NCCL work: %d, last completed NCCL work: %d.\n",
			s.rank, s.in, s.work(), s.rank, s.group, s.in, s.seq, e, c)
	},
	"2.4": func(s *stuckIn) string {
		e, c := s.numbers()
		return fmt.Sprintf("[rank%d]:[E1206 18:44:12.715298746 ProcessGroupNCCL.cpp:607] [Rank %d] Watchdog caught collective operation timeout: %s\n[rank%d]:[E1206 18:44:12.715588844 ProcessGroupNCCL.cpp:1664] [PG %s (%s) Rank %d] Exception (either an error or timeout) detected by watchdog at work: %d, last enqueued NCCL work: %d, last completed NCCL work: %d.\n",
			s.rank, s.in, s.work(), s.rank, s.group, s.desc, s.in, s.seq, e, c)
	},
	"2.14": func(s *stuckIn) string {
		e, c := s.numbers()
		pg := fmt.Sprintf("[PG ID %d PG GUID %s(%s) Rank %d]", s.rank%3, s.group, s.desc, s.in)
		return fmt.Sprintf("[rank%d]:[E1116 10:00:00.100 ProcessGroupNCCL.cpp:757] [Rank %d] Watchdog caught collective operation timeout: %s\n[rank%d]:[E1116 10:00:00.2 ProcessGroupNCCL.cpp:2395] %s  failure detected by watchdog at work sequence id: %d PG status: last enqueued work: %d, last completed work: %d\n"+
			"[rank%d]:[E1116 10:00:00.2 ProcessGroupNCCL.cpp:801] Stack trace of the failed collective: \n#0 all_reduce from /x/distributed_c10d.py:3174\n#1 wrapper from /x/c10d_logger.py:83\n"+
			"[rank%d]:[E1116 10:01:00.2 ProcessGroupNCCL.cpp:2057] %s Process group watchdog thread terminated with exception: [Rank %d] Watchdog caught collective operation timeout: %s\nterminate called after throwing an instance of 'c10::DistBackendError'\n",
			s.rank, s.in, s.work(), s.rank, pg, s.seq, e, c, s.rank, s.rank, pg, s.in, s.work())
	},
}

// logs are the logs of a job, by file name; a name with a rank is of that rank.
type logs map[string]string

func (l logs) judge(t *testing.T, o Options) *Result {
	t.Helper()
	s := NewSet()
	names := make([]string, 0, len(l))
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f := File{Path: name, Rank: -1}
		if n, ok := after([]byte(name), "rank"); ok {
			f.Rank, f.Certain = n, true
		}
		require.NoError(t, s.Read(f, strings.NewReader(l[name])))
	}
	o.Job, o.Engine = "job", desync.NewDefaultConfig()
	return s.Judge(o)
}

// inDefault is a rank in operation 41 of the group of all.
func inDefault(rank int64) *stuckIn {
	return &stuckIn{rank: rank, in: rank, group: "0", desc: "default_pg", seq: 41, op: "ALLREDUCE", numIn: 262144, out: 262144}
}

const outOfMemory = "[rank%d]: Traceback (most recent call last):\n[rank%d]:   File \"train.py\", line 3, in <module>\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"

// files gives each of n ranks a log of its own; those that did not come write what they say.
func files(version func(*stuckIn) string, n int64, absent map[int64]string) logs {
	out := logs{}
	for r := range n {
		text, ok := absent[r]
		if !ok {
			text = "step 40 loss 2.1\n" + version(inDefault(r))
		}
		out[fmt.Sprintf("rank%d_stderr.log", r)] = text
	}
	return out
}

// assertRoot asserts that one root is found: of one rank and class.
func assertRoot(t *testing.T, r *Result, rank int64, class, op string) *model.Finding {
	t.Helper()
	require.Len(t, r.Roots, 1, "%+v", r.Roots)
	f := &r.Roots[0].Finding
	assert.Equal(t, desync.Hang, r.Verdict)
	assert.Equal(t, []any{model.Some(rank), class, op}, []any{f.Rank, f.Class, f.Op})
	return f
}

func assertNobody(t *testing.T, r *Result) {
	t.Helper()
	for i := range r.Roots {
		f := &r.Roots[i].Finding
		assert.Empty(t, f.Ranks, "%+v", f)
		assert.Empty(t, f.Candidates, "%+v", f)
	}
}

// Whatever version wrote the lines, the rank that ended by its own error is the one.
func TestJudge_RankEnded_IsTheRankWithItsError(t *testing.T) {
	for version, write := range versions {
		for name, ended := range map[string]string{
			"out of memory":    fmt.Sprintf(outOfMemory, 5, 5),
			"an exception":     "[rank5]: Traceback (most recent call last):\n[rank5]:   File \"x.py\", line 1, in f\n[rank5]: ValueError: bad sample\n",
			"a device":         "[rank5]: Traceback (most recent call last):\n[rank5]: torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n",
			"an uncorrectable": "[rank5]:[E1116 ProcessGroupNCCL.cpp:1] x\nCUDA error: uncorrectable ECC error encountered\n",
			"a signal":         "Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n",
		} {
			t.Run(version+" "+name, func(t *testing.T) {
				r := files(write, 8, map[int64]string{5: ended}).judge(t, Options{})
				f := assertRoot(t, r, 5, model.ClassProcessDead, "all_reduce 41")
				assert.Equal(t, int64(7), f.WaitingCount.Or(0))
				assert.Contains(t, evidence.Encode(f.Evidence), "last error in the log of rank 5: ")
				assert.Contains(t, evidence.Encode(f.Evidence), "rank5_stderr.log:")
			})
		}
	}
}

// prefixes are what launchers and collectors of logs put in front of lines.
var prefixes = map[string]func(rank int64, line string) string{
	"none":   func(_ int64, l string) string { return l },
	"srun":   func(r int64, l string) string { return fmt.Sprintf("%2d: %s", r, l) },
	"mpirun": func(r int64, l string) string { return fmt.Sprintf("[1,%d]<stderr>:%s", r, l) },
	"ray": func(r int64, l string) string {
		return fmt.Sprintf("(RayTrainWorker pid=%d, ip=10.0.0.%d) %s", 4000+r, r/2, l)
	},
	"ray, colours": func(r int64, l string) string {
		return fmt.Sprintf("\x1b[36m(RayTrainWorker pid=%d)\x1b[0m %s", 4000+r, l)
	},
	"kubectl":      func(r int64, l string) string { return fmt.Sprintf("[pod/job-%d/torch] %s", r, l) },
	"containerd":   func(_ int64, l string) string { return "2026-11-16T10:00:00.123456789Z stderr F " + l },
	"a time, CRLF": func(_ int64, l string) string { return "2026-11-16 10:00:00,123 " + l + "\r" },
	"compose":      func(r int64, l string) string { return fmt.Sprintf("trainer-%d  | %s", 100+r, l) },
	"a bar": func(_ int64, l string) string {
		return " 1%|▏  | 24/1752 [01:08<1:22:56,  2.88s/it]\r 1%|▏  | 25/1752 " + l
	},
}

// One merged file, with or without labels, tells as much as a file a rank.
func TestJudge_MergedFile_IsReadByRank(t *testing.T) {
	for name, prefix := range prefixes {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for r := range int64(8) {
				text := versions["2.14"](inDefault(r))
				if r == 5 {
					text = fmt.Sprintf(outOfMemory, 5, 5)
				}
				for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
					b.WriteString(prefix(r, l) + "\n")
				}
			}
			f := assertRoot(t, logs{"job.out": b.String()}.judge(t, Options{WorldSize: 8}), 5, model.ClassProcessDead, "all_reduce 41")
			assert.Contains(t, evidence.Encode(f.Evidence), "CUDA out of memory")
		})
	}
}

// Old lines say only a rank in the group; the label or the file's name says that of the job.
func TestJudge_OldLines_TakeTheRankOfTheirSource(t *testing.T) {
	var b strings.Builder
	for r := range int64(4) {
		if r != 2 {
			b.WriteString(fmt.Sprintf("%d: ", r) + strings.SplitN(versions["2.1"](inDefault(r)), "\n", 2)[0] + "\n")
		}
	}
	b.WriteString("2: Traceback (most recent call last):\n2: RuntimeError: no space left on device\n")
	assertRoot(t, logs{"slurm-7.out": b.String()}.judge(t, Options{WorldSize: 4}), 2, model.ClassProcessDead, "all_reduce 41")
}

// The heartbeat monitor says of every rank how far it had come, be it in nothing that timed out.
func TestJudge_DumpSignal_TellsWhoIsBehind(t *testing.T) {
	for name, line := range map[string]string{
		"2.6":  "[rank3]:[E x.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from  rank 6 and we will try our best to dump the debug info. Last enqueued NCCL work: 40, last completed NCCL work: 40.This is most likely caused by incorrect usages of collectives\n",
		"2.4":  "[rank3]:[E x.cpp:1346] [PG 0 (default_pg) Rank 3] Received a dump signal due to a collective timeout from rank 6 and we will try our best to dump the debug info. Last enqueued NCCL work: 40, last completed NCCL work: 40.\n",
		"many": strings.Repeat("[rank3]:[E x.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from  rank 6. Last enqueued NCCL work: 40, last completed NCCL work: 40.\n", 50),
		"and a caught exception": "[rank3]: Traceback (most recent call last):\n[rank3]: ValueError: retried\n" +
			"[rank3]:[E x.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from  rank 6. Last enqueued NCCL work: 40, last completed NCCL work: 40.\n",
		"two behind": "[rank3]:[E x.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to a collective timeout from  rank 6. Last enqueued NCCL work: 39, last completed NCCL work: 39.\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := files(versions["2.14"], 8, map[int64]string{3: line}).judge(t, Options{WorldSize: 8})
			f := assertRoot(t, r, 3, model.ClassNotScheduled, "all_reduce 41")
			assert.GreaterOrEqual(t, f.Confidence, 0.9)
		})
	}
}

// A rank of which only the heartbeat monitor says that it entered an operation waits in it.
func TestJudge_DumpSignalOfARankThatEntered_IsAWait(t *testing.T) {
	signal := func(rank, enqueued, completed int64) string {
		return fmt.Sprintf("[rank%[1]d]:[E x.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank %[1]d] Received a dump signal due to a collective timeout from  rank 6 and we will try our best. Last enqueued NCCL work: %[2]d, last completed NCCL work: %[3]d.\n", rank, enqueued, completed)
	}
	l := files(versions["2.14"], 8, map[int64]string{2: signal(2, 41, 40), 0: signal(0, 40, 40), 5: signal(5, 44, 40)})
	f := assertRoot(t, l.judge(t, Options{WorldSize: 8}), 0, model.ClassNotScheduled, "all_reduce 41")
	assert.Equal(t, []int64{1, 2, 3, 4, 5, 6, 7}, f.Waiting)
}

// One log alone that says nothing is of the rank that has not come, with less certainty.
func TestJudge_SilentLog_IsTheRank(t *testing.T) {
	for name, text := range map[string]string{
		"empty":        "",
		"its progress": "step 39\nstep 40\n",
		"a warning":    "UserWarning: NCCL_TIMEOUT is deprecated\n[rank1]:[W1116 x.cpp:9] Warning: timeout of 10 s while waiting for a store\n",
		"stuck":        "[rank1]:[F1116 x.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 1] [PG ID 0 PG GUID 0(default_pg) Rank 1] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued collectives. This typically indicates a NCCL/CUDA API hang\n",
		"heartbeat":    "[rank1]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 1] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=2\n",
	} {
		t.Run(name, func(t *testing.T) {
			r := files(versions["2.3"], 4, map[int64]string{1: text}).judge(t, Options{WorldSize: 4})
			f := assertRoot(t, r, 1, model.ClassNotScheduled, "all_reduce 41")
			assert.Less(t, f.Confidence, 0.96)
		})
	}
	r := files(versions["2.3"], 8, map[int64]string{1: "", 4: "", 6: "step\n"}).judge(t, Options{WorldSize: 8})
	require.Len(t, r.Roots, 1)
	assert.Equal(t, []int64{1, 4, 6}, r.Roots[0].Finding.Candidates, "of several some were ended before they wrote")
	assert.Empty(t, r.Roots[0].Finding.Ranks)
}

const torchrun = `E1116 10:00:01.466000 1234 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: %[2]d) local_rank: 1 (pid: 12345) of binary: /usr/bin/python3
Traceback (most recent call last):
  File "/usr/bin/torchrun", line 8, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-16_10:00:02
  host      : node0
  rank      : 2 (local_rank: 2)
  exitcode  : -15 (pid: 12340)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 12340
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-16_10:00:00
  host      : node0
  rank      : %[1]d (local_rank: 1)
  exitcode  : %[2]d (pid: 12345)
  error_file: <N/A>
  traceback : %[3]s
============================================================
`

func TestJudge_TorchrunSummary_NamesWhoEnded(t *testing.T) {
	const see = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
	killed := fmt.Sprintf(torchrun, 5, -9, "Signal 9 (SIGKILL) received by PID 12345")
	for name, c := range map[string]struct{ agent, own string }{
		"killed":    {killed, ""},
		"segfault":  {fmt.Sprintf(torchrun, 5, -11, "Signal 11 (SIGSEGV) received by PID 12345"), "step 40\n"},
		"exit 1":    {fmt.Sprintf(torchrun, 5, 1, see), ""},
		"a record":  {fmt.Sprintf(torchrun, 5, 1, "Traceback (most recent call last):\n    File \"x.py\", line 1, in f\n  KeyError: 'tokens'\n  "), ""},
		"with CRLF": {strings.ReplaceAll(killed, "\n", "\r\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := files(versions["2.14"], 8, map[int64]string{5: c.own})
			l["torchrun.log"] = c.agent
			f := assertRoot(t, l.judge(t, Options{WorldSize: 8}), 5, model.ClassProcessDead, "all_reduce 41")
			assert.Contains(t, evidence.Encode(f.Evidence), "torchrun.log:")

			delete(l, "rank5_stderr.log")
			assertRoot(t, l.judge(t, Options{}), 5, model.ClassProcessDead, "all_reduce 41")
		})
	}
	// The watchdog aborts ranks that wait: the first to end is no culprit for that.
	l := files(versions["2.14"], 8, nil)
	l["torchrun.log"] = fmt.Sprintf(torchrun, 5, -6, "Signal 6 (SIGABRT) received by PID 12345")
	assertNobody(t, l.judge(t, Options{WorldSize: 8}))
	l = files(versions["2.14"], 8, map[int64]string{5: ""})
	l["mpirun.log"] = "mpirun noticed that process rank 5 with PID 0 on node n1 exited on signal 9 (Killed).\n"
	assertRoot(t, l.judge(t, Options{WorldSize: 8}), 5, model.ClassProcessDead, "all_reduce 41")
}

// Who waits in a group is known by its rank in it: the one that lacks is named, of whatever group.
func TestJudge_SeveralGroups_AreJudgedTogether(t *testing.T) {
	for name, c := range map[string]struct {
		late   int64
		parts  [][]int64 // of one description
		oneKey bool      // all have one name
		world  int64
	}{
		"blocks":                {6, [][]int64{{0, 1, 2, 3}, {4, 5, 6, 7}}, false, 8},
		"blocks of one name":    {6, [][]int64{{0, 1, 2, 3}, {4, 5, 6, 7}}, true, 8},
		"strides":               {3, [][]int64{{0, 2, 4, 6}, {1, 3, 5, 7}}, false, 8},
		"strides of one name":   {3, [][]int64{{0, 2, 4, 6}, {1, 3, 5, 7}}, true, 8},
		"the last of its group": {7, [][]int64{{0, 1, 2, 3}, {4, 5, 6, 7}}, false, 8},
		"the first":             {8, [][]int64{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}, false, 12},
	} {
		t.Run(name, func(t *testing.T) {
			l := logs{}
			for k, part := range c.parts {
				hangs := slices.Contains(part, c.late)
				for i, r := range part {
					s := inDefault(r)
					s.seq = 16
					if hangs {
						s = &stuckIn{rank: r, in: int64(i), group: fmt.Sprint(3 + k), desc: "mesh_shard", seq: 9, op: "_REDUCE_SCATTER_BASE", numIn: 4096, out: 1024}
						if c.oneKey {
							s.group = "mesh_shard"
						}
					}
					text := versions["2.14"](s)
					if r == c.late {
						text = "step\n"
					}
					l[fmt.Sprintf("rank%d.log", r)] = text
				}
			}
			r := l.judge(t, Options{WorldSize: c.world})
			require.NotEmpty(t, r.Roots)
			require.Len(t, r.Roots, 1)
			assert.Equal(t, model.Some(c.late), r.Roots[0].Finding.Rank)
			assert.Equal(t, model.ClassNotScheduled, r.Roots[0].Finding.Class)
		})
	}
}

// Members that nobody tells are not taken for all.
func TestJudge_GroupOfUnknownSize_AccusesNobodyOfThoseWhoWait(t *testing.T) {
	l := logs{}
	for i, r := range []int64{4, 5, 6} {
		l[fmt.Sprintf("rank%d.log", r)] = versions["2.14"](&stuckIn{rank: r, in: int64(i), group: "9", desc: "tp", seq: 3, op: "ALLREDUCE", numIn: 4, out: 4})
	}
	for _, r := range []int64{0, 1, 2, 3, 7} {
		l[fmt.Sprintf("rank%d.log", r)] = "step\n"
	}
	r := l.judge(t, Options{WorldSize: 8})
	require.Len(t, r.Roots, 1)
	assert.Equal(t, model.ClassIncompleteEvidence, r.Roots[0].Finding.Class)
	assert.Contains(t, r.Roots[0].Finding.Candidates, int64(7))
	assert.NotContains(t, r.Roots[0].Finding.Candidates, int64(5))
}

// Of a large job of which few logs are there, those that wait are no candidates.
func TestJudge_FewLogsOfManyRanks_KeepThoseWhoWaitOut(t *testing.T) {
	l := logs{"driver.log": "(W[rank=31] pid=3, ip=10.1.1.2) [rank31]:[E x.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank 31] Received a dump signal due to a collective timeout from  rank 107. Last enqueued NCCL work: 51, last completed NCCL work: 51.\n" +
		"(W[rank=97] pid=4, ip=10.1.2.2) [rank97]:[E x.cpp:683] [Rank 6] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 651421 milliseconds before timing out.\n"}
	r := l.judge(t, Options{})
	require.Len(t, r.Roots, 1)
	f := &r.Roots[0].Finding
	assert.Empty(t, f.Ranks)
	assert.NotContains(t, f.Candidates, int64(97))
	assert.Empty(t, r.Problems)
}

func TestJudge_Controls_AccuseNobody(t *testing.T) {
	all := func(change func(s *stuckIn)) logs {
		l := logs{}
		for r := range int64(8) {
			s := inDefault(r)
			change(s)
			l[fmt.Sprintf("rank%d.log", r)] = versions["2.14"](s)
		}
		return l
	}
	half := files(versions["2.14"], 16, nil)
	for r := range int64(8) {
		delete(half, fmt.Sprintf("rank%d_stderr.log", 8+r))
	}
	for name, l := range map[string]logs{
		"all in one operation":      all(func(*stuckIn) {}),
		"all enqueued more":         all(func(s *stuckIn) { s.enqueued = 55 }),
		"own tracebacks, caught":    {"rank0.log": "Traceback (most recent call last):\nValueError: bad\nstep 2\n", "rank1.log": "step 2\n"},
		"a normal end":              {"rank0.log": "step 2\ndone\n", "rank1.log": "done\n"},
		"a warning":                 {"rank0.log": "[rank0]:[W1116 x.cpp:9] Warning: Watchdog timeout is short\n", "rank1.log": ""},
		"words about time-outs":     {"rank0.log": "if you see Watchdog caught collective operation timeout, raise it\n", "rank1.log": ""},
		"one node of several":       half,
		"every rank out of memory?": {"rank0.log": fmt.Sprintf(outOfMemory, 0, 0), "rank1.log": fmt.Sprintf(outOfMemory, 1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			assertNobody(t, l.judge(t, Options{}))
			if name != "one node of several" {
				assertNobody(t, l.judge(t, Options{WorldSize: int64(len(l))}))
			}
		})
	}
	r := all(func(*stuckIn) {}).judge(t, Options{WorldSize: 8})
	require.Len(t, r.Roots, 1)
	assert.Equal(t, model.ClassStalledOp, r.Roots[0].Finding.Class)
}

// A rank whose sizes differ from the others' is named.
func TestJudge_Sizes_AreCompared(t *testing.T) {
	l := files(versions["2.14"], 8, nil)
	odd := inDefault(3)
	odd.numIn, odd.out = 64, 64
	l["rank3_stderr.log"] = versions["2.14"](odd)
	assertRoot(t, l.judge(t, Options{WorldSize: 8}), 3, model.ClassMismatchSize, "all_reduce 41")
}

// A device that fails is told of by the watchdog as a time-out is, and is none.
func TestJudge_DeviceError_IsNoTimeOut(t *testing.T) {
	for _, e := range []string{"CUDA error: an illegal memory access was encountered", "CUDA error: uncorrectable ECC error encountered"} {
		l := files(versions["2.14"], 4, map[int64]string{
			2: "[rank2]:[E x.cpp:2395] [PG ID 0 PG GUID 0(default_pg) Rank 2]  failure detected by watchdog at work sequence id: 41 PG status: last enqueued work: 41, last completed work: 40\n" +
				"[rank2]:[E x.cpp:2057] [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group watchdog thread terminated with exception: " + e + "\n" + e + "\n",
		})
		f := assertRoot(t, l.judge(t, Options{WorldSize: 4}), 2, model.ClassProcessDead, "all_reduce 41")
		assert.Contains(t, evidence.Encode(f.Evidence), e)
	}
}
