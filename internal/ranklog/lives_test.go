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
)

// counting are lines of steps.
func counting(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "iteration %d/900 | lm loss 2.%d\n", i, i%7)
	}
	return b.String()
}

// waitsIn is what a rank writes that waits in an operation of the group of all, at an hour.
func waitsIn(rank, seq int64, hour string) string {
	s := inDefault(rank)
	s.seq = seq
	text := versions["2.14"](s)
	return strings.ReplaceAll(text, "E1116 10:", "E1116 "+hour+":")
}

const aborted = "Traceback (most recent call last):\ntorch.distributed.DistBackendError: NCCL communicator was aborted\n"

// Lines that waited in a buffer follow the watchdog's: a rank that wrote these waits, and is not
// accused.
func TestJudge_LinesOfABuffer_AreNoLife(t *testing.T) {
	stamped := func(stamp string) string {
		return strings.ReplaceAll(counting(20, 60), "iteration", stamp+" iteration")
	}
	for name, c := range map[string]struct{ before, behind string }{
		"the steps go on":               {counting(0, 20), counting(20, 41)},
		"after an error":                {counting(0, 20), aborted + counting(20, 41)},
		"nothing was written before":    {"", counting(0, 41)},
		"all of it, with the beginning": {"", "reading the configuration\nbuilding 12 layers\nwarming up\n" + counting(0, 41)},
		"a bar":                         {"", " 1%|  | 24/1752 [01:08<1:22:56,  2.88s/it]\r 2%|  | 25/1752 [01:09<1:22:55,  2.87s/it]\r 3%|  | 26/1752 [01:10<1:22:54,  2.87s/it]\r 4%|  | 27/1752 [01:11<1:22:53,  2.87s/it]\r"},
		"times of before":               {"2026-11-16 09:20:00,000 iteration 0/900\n", stamped("2026-11-16 09:49:30,100")},
		"times of a collector":          {counting(0, 20), stamped("2026-11-16T10:10:00.123456789Z")},
		"a fall in this log alone":      {counting(0, 20), counting(7, 41)},
		"no numbers":                    {"", strings.Repeat("loss 2.1\nloss 2.2\n", 20)},
		"another zone":                  {"2026-11-16 17:20:00,000 iteration 0/900\n", stamped("2026-11-16 17:49:30,100")},
	} {
		t.Run(name, func(t *testing.T) {
			l := logs{}
			for r := range int64(6) {
				l[fmt.Sprintf("rank%d.log", r)] = counting(0, 41) + waitsIn(r, 41, "10")
			}
			l["rank4.log"] = c.before + waitsIn(4, 41, "10") + c.behind
			r := l.judge(t, Options{WorldSize: 6})
			assertNobody(t, r)
			assert.Equal(t, int64(6), r.Waiting)
			assert.Empty(t, r.Earlier)

			l["rank1.log"] = counting(0, 41)
			assertRoot(t, l.judge(t, Options{WorldSize: 6}), 1, model.ClassNotScheduled, "all_reduce 41")
		})
	}
	all := logs{}
	for r := range int64(6) {
		all[fmt.Sprintf("rank%d.log", r)] = waitsIn(r, 41, "10") + aborted + counting(0, 41)
	}
	all["rank3.log"] = ""
	assertRoot(t, all.judge(t, Options{WorldSize: 6}), 3, model.ClassNotScheduled, "all_reduce 41")
}

const begun = "reading the configuration\nbuilding 12 layers\nwarming up\n"

// A life of the job ends for all ranks: the last one is judged, whatever the log shows that it began.
func TestJudge_LaterLife_IsTheJobs(t *testing.T) {
	const late = 1 // in the second life; rank 3 ended in the first one
	for name, c := range map[string]struct {
		first, second int64
		print         func(rank int64, life int) string
		hours         [2]string
	}{
		"numbers fall, nothing is printed":         {77, 5, nil, [2]string{"10", "10"}},
		"numbers fall, one rank prints":            {77, 5, func(r int64, _ int) string { return strings.Repeat(counting(0, 9), int(1-min(r, 1))) }, [2]string{"10", "10"}},
		"numbers rise, all begin again":            {5, 77, func(int64, int) string { return begun }, [2]string{"10", "10"}},
		"numbers rise, one prints, others nothing": {5, 77, func(r int64, _ int) string { return strings.Repeat(begun+counting(0, 9), int(1-min(r, 1))) }, [2]string{"10", "10"}},
		"one number, all begin again":              {5, 5, func(int64, int) string { return begun + counting(0, 30) }, [2]string{"10", "10"}},
		"one number, steps fall":                   {5, 5, func(int64, int) string { return counting(0, 30) }, [2]string{"10", "10"}},
		"one number, by the clock":                 {5, 5, func(r int64, _ int) string { return strings.Repeat(begun, int(1-min(r, 1))) }, [2]string{"10", "14"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := logs{}
			merged := [2]string{}
			for r := range int64(6) {
				lives := [2]string{waitsIn(r, c.first, c.hours[0]), waitsIn(r, c.second, c.hours[1])}
				if r == 3 {
					lives[0] = fmt.Sprintf(outOfMemory, 3, 3)
				}
				if r == late {
					lives[1] = ""
				}
				text := ""
				for life := range lives {
					if c.print != nil {
						lives[life] = c.print(r, life) + lives[life]
					}
					text += lives[life]
					merged[life] += lives[life]
				}
				l[fmt.Sprintf("rank%d.log", r)] = text
			}
			op := fmt.Sprintf("all_reduce %d", c.second)
			r := l.judge(t, Options{WorldSize: 6})
			f := assertRoot(t, r, late, model.ClassNotScheduled, op)
			assert.Equal(t, int64(5), f.WaitingCount.Or(0))
			assert.Empty(t, r.Problems)
			if c.first >= c.second {
				assert.Contains(t, r.Earlier, fmt.Sprintf("timed out in all_reduce %d of default_pg", c.first))
			}
			if c.first > c.second {
				assertRoot(t, logs{"train.log": merged[0] + merged[1]}.judge(t, Options{WorldSize: 6}), late, model.ClassNotScheduled, op)
			}
		})
	}
}

// A job whose last life ended well accuses nobody, and how the life before ended is said.
func TestJudge_LastLifeEndedWell_AccusesNobody(t *testing.T) {
	hung := func(r int64) string {
		if r == 3 {
			return fmt.Sprintf(outOfMemory, 3, 3)
		}
		return waitsIn(r, 41, "10")
	}
	job := func(printed func(rank int64, life int) string) logs {
		l := logs{}
		for r := range int64(6) {
			l[fmt.Sprintf("rank%d.log", r)] = printed(r, 0) + hung(r) + printed(r, 1)
		}
		return l
	}
	ofFirst := func(text [2]string) func(int64, int) string {
		return func(r int64, life int) string {
			if r > 0 {
				return ""
			}
			return text[life]
		}
	}
	merged := ""
	for r := range int64(6) {
		merged += hung(r)
	}
	for name, l := range map[string]logs{
		"all begin again, the first counts": job(func(r int64, life int) string {
			return begun + ofFirst([2]string{counting(0, 40), counting(0, 900)})(r, life)
		}),
		"the first begins again and counts": job(ofFirst([2]string{begun + counting(0, 40), begun + counting(30, 900)})),
		"the first counts again":            job(ofFirst([2]string{counting(0, 40), counting(30, 900) + "done\n"})),
		"one log, counts again":             {"train.log": counting(0, 40) + merged + counting(30, 900) + "done\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := l.judge(t, Options{WorldSize: 6})
			assert.Equal(t, desync.NoData, r.Verdict, "%+v", r.Roots)
			assert.Empty(t, r.Roots)
			assert.Contains(t, r.MayRun, "earlier life")
			assert.Contains(t, r.Earlier, "ranks timed out in all_reduce 41 of default_pg")
		})
	}
}

// Several processes print to one log, one after the other: that a count falls there is no later life.
func TestJudge_ProcessesInTurn_AreOneLife(t *testing.T) {
	for name, order := range map[string][]int64{"by rank": {0, 1, 2, 3, 4, 5}, "the silent one is last": {0, 1, 2, 4, 5, 3}, "the silent one is first": {3, 0, 1, 2, 4, 5}} {
		for _, printed := range []string{counting(0, 9), begun + counting(0, 9)} {
			t.Run(name+", "+printed[:9], func(t *testing.T) {
				text := ""
				for _, r := range order {
					text += printed
					if r != 3 {
						text += waitsIn(r, 41, "10")
					}
				}
				assertRoot(t, logs{"train.log": text + "[rank3]: ready\n"}.judge(t, Options{WorldSize: 6}), 3, model.ClassNotScheduled, "all_reduce 41")
			})
		}
	}
}

// An error that may be of an earlier life is no end of its rank where another one is silent, too.
func TestJudge_ErrorOfAnUnknownLife_IsACandidate(t *testing.T) {
	l := logs{}
	for r := range int64(6) {
		text := waitsIn(r, 77, "10") + waitsIn(r, 5, "10")
		if r == 1 {
			text = waitsIn(r, 77, "10")
		}
		l[fmt.Sprintf("rank%d.log", r)] = text
	}
	l["rank3.log"] = fmt.Sprintf(outOfMemory, 3, 3)
	r := l.judge(t, Options{WorldSize: 6})
	require.Len(t, r.Roots, 1)
	assert.Empty(t, r.Roots[0].Finding.Ranks)
	assert.Equal(t, []int64{1, 3}, r.Roots[0].Finding.Candidates)

	l["rank3.log"] = waitsIn(3, 77, "10") + fmt.Sprintf(outOfMemory, 3, 3)
	r = l.judge(t, Options{WorldSize: 6})
	require.NotEmpty(t, r.Roots)
	assert.Equal(t, []any{model.Some(int64(3)), model.ClassProcessDead}, []any{r.Roots[0].Finding.Rank, r.Roots[0].Finding.Class}, "it waited in the first life")
}

// The older parts of a log precede it.
func TestJudge_RotatedLogs_AreOneLog(t *testing.T) {
	for _, older := range [][]string{{".1"}, {".2.gz", ".1"}, {"-20261115"}, {".10", ".2"}} {
		paths := []string{}
		texts := logs{}
		for r := range int64(4) {
			base := fmt.Sprintf("out/rank_%d.log", r)
			for _, part := range older {
				texts[base+part] = counting(0, 9)
				paths = append(paths, base+part)
			}
			texts[base+older[len(older)-1]] += waitsIn(r, 90, "10")
			texts[base] = counting(0, 9)
			if r != 2 {
				texts[base] += waitsIn(r, 41, "10")
			}
			paths = append(paths, base)
		}
		slices.Sort(paths)
		s := NewSet()
		sorted, names := InOrder(paths, func(p string) string { return p })
		for _, path := range sorted {
			f := names.File(path)
			assert.Equal(t, []any{true, path}, []any{f.Certain, f.Path})
			require.NoError(t, s.Read(f, strings.NewReader(texts[path])))
		}
		assertRoot(t, s.Judge(Options{Job: "job", Engine: desync.NewDefaultConfig(), WorldSize: 4}), 2, model.ClassNotScheduled, "all_reduce 41")
	}
	for path, want := range map[string]File{
		"a/rank_3.log.1": {Rank: 3, Certain: true}, "a/rank_3.log.12.gz": {Rank: 3, Certain: true}, "a/worker-3.out.1": {Rank: 3}, "attempt_0/3/stderr.log.2": {Rank: 3}, "rank3.log-20261120": {Rank: 3, Certain: true},
	} {
		f := FileOf(path)
		assert.Equal(t, []any{want.Rank, want.Certain, path}, []any{f.Rank, f.Certain, f.Path}, path)
	}
}

func TestCountOf_ReadsWhatLinesCount(t *testing.T) {
	for line, want := range map[string]counted{
		"step 40 loss 2.1": {40, -1}, "[2026-11-16 10:00:00,123] [INFO] iteration 7/ 900": {7, 900}, " 1%|  | 24/1752 [01:08<1:22:56,  2.88s/it]": {24, -1},
		"Epoch 3:  12%|# | 24/1752": {3, 24}, "step 1,024": {1024, -1}, "10:00:05 lr 3e-4 gnorm 1.2": {-1, -1}, "loss=0.25 step=41": {41, -1}, "rank0 gpu3": {-1, -1}, "{\"step\": 12, \"n\": 3}": {12, 3},
	} {
		_, got, ok := countOf([]byte(line))
		assert.Equal(t, want, got, line)
		assert.Equal(t, want[0] >= 0, ok, line)
	}
}

func TestStampOf_ReadsTheTimeOfTheProcess(t *testing.T) {
	at := stampOf([]byte("[rank0]:[E1116 10:00:00.100 x.cpp:1] x"))
	for line, want := range map[string]moment{
		"2026-11-16 10:00:00,100 step 1": at, "[2026-11-16 10:00:01,100] x": at + second, "W1117 10:00:00.100000 77 x.py": at + day,
		"2026-11-16T10:00:00.123456789Z stderr F x": 0, "2026-11-16T10:00:00+01:00 x": 0, "step 1116 10 000 000": 0, "": 0, "2026-11-16T10:20:00.1Z stdout F 2026-11-16 10:00:00,100 x": at,
	} {
		assert.Equal(t, want, stampOf([]byte(line)), line)
	}
}

// Numbers of launchers, threads and monitors behind the time-outs are no later life.
func TestJudge_LinesThatCountNoSteps_AreNoLife(t *testing.T) {
	several := func(format string) (text string) {
		for i := range 8 {
			text += fmt.Sprintf(format+"\n", i, 70000+i)
		}
		return text
	}
	for name, text := range map[string]string{
		"torchrun":             several("W1128 03:05:0%d.620000 2500 torch/distributed/elastic/multiprocessing/api.py:897] Sending process %d closing signal SIGTERM"),
		"torchrun 2.1":         several("[2023-11-28 03:05:0%d,620] torch.distributed.elastic.multiprocessing.api: [WARNING] Sending process %d closing signal SIGTERM"),
		"warnings":             several("W1128 03:05:0%d.620000 2500 x.py:8] some warning %d"),
		"a library's warnings": several("[rank0]:[W1128 03:05:0%d.620000 ProcessGroupNCCL.cpp:8] Warning: step %d retry"),
		"a monitor":            several("2026-11-28 03:1%d:00 gpu 0 mem %d MiB"),
		"a heartbeat":          several("2026-11-28 03:1%d:00 heartbeat %d"),
		"the end of a script":  "Training finished\n",
	} {
		t.Run(name, func(t *testing.T) {
			files, merged := logs{}, counting(0, 9)
			for r := range int64(8) {
				one := counting(0, 9)
				if r != 3 {
					one += waitsIn(r, 41, "10")
					merged += waitsIn(r, 41, "10")
				}
				files[fmt.Sprintf("rank%d.log", r)] = one
			}
			assert.Contains(t, suspects(files.judge(t, Options{WorldSize: 8})), int64(3))
			files["torchrun.log"] = text
			assert.Contains(t, suspects(files.judge(t, Options{WorldSize: 8})), int64(3), "a log of its own")
			assert.Contains(t, suspects(logs{"job.out": merged + "[rank3]: x\n" + text}.judge(t, Options{WorldSize: 8})), int64(3), "merged")
			delete(files, "torchrun.log")
			for path := range files {
				files[path] += text
			}
			assert.Contains(t, suspects(files.judge(t, Options{WorldSize: 8})), int64(3), "in each log")
		})
	}
}

// suspects are the ranks and candidates of the first root.
func suspects(r *Result) []int64 {
	if len(r.Roots) == 0 {
		return nil
	}
	f := &r.Roots[0].Finding
	return slices.Concat(f.Ranks, f.Candidates)
}

// "train.log.0" to "train.log.3" are the logs of four ranks, not parts of one.
func TestFileOf_RankBehindTheName_IsNoPart(t *testing.T) {
	paths := []string{"train.log.0", "train.log.1", "train.log.2", "train.log.3"}
	sorted, names := InOrder(paths, func(p string) string { return p })
	assert.Equal(t, paths, sorted)
	for r, path := range paths {
		f := names.File(path)
		assert.Equal(t, []any{path, int64(0), int64(r)}, []any{f.Log, f.Part, f.Rank})
	}
	older := []string{"rank0.log", "rank0.log.1", "0/0.log", "0/0.log.20261120-100000", "0/0.log.20261119-100000.gz", "rank1.log-20261120-1795132800", "rank1.log-20261120-1795136400"}
	sorted, names = InOrder(older, func(p string) string { return p })
	assert.Equal(t, []string{"rank0.log.1", "rank0.log", "0/0.log.20261119-100000.gz", "0/0.log.20261120-100000", "0/0.log", "rank1.log-20261120-1795132800", "rank1.log-20261120-1795136400"}, sorted)
	assert.Equal(t, "0/0.log", names.File("0/0.log.20261120-100000").Log)
}

// A gauge that falls is no step that begins again.
func TestJudge_GaugeThatFalls_IsNoLife(t *testing.T) {
	l := logs{}
	for r := range int64(8) {
		text := counting(0, 9) + "gpu mem 4031\ngpu mem 4032\n"
		if r != 3 {
			text += waitsIn(r, 41, "10")
		}
		l[fmt.Sprintf("rank%d.log", r)] = text + "gpu mem 100\ngpu mem 200\ngpu mem 300\ngpu mem 400\n"
	}
	assert.Contains(t, suspects(l.judge(t, Options{WorldSize: 8})), int64(3))
}
