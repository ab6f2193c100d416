// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waitsFor is what a rank writes that waits for so many milliseconds in operation seq.
func waitsFor(rank, seq, ms int64) string {
	s := inDefault(rank)
	s.seq = seq
	return strings.ReplaceAll(versions["2.14"](s), fmt.Sprintf("ran for 600%03d", rank), fmt.Sprintf("ran for %d", ms))
}

// readAll reads logs by their paths, in order.
func readAll(t *testing.T, l logs) *Set {
	t.Helper()
	s := NewSet()
	names := make([]string, 0, len(l))
	for name := range l {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		require.NoError(t, s.Read(FileOf(name), strings.NewReader(l[name])))
	}
	return s
}

// jobsOf lists the base names of the files of each job.
func jobsOf(t *testing.T, l logs) (out map[string][]string, strays []string, err error) {
	t.Helper()
	s := readAll(t, l)
	require.True(t, s.Several())
	jobs, strays, err := s.Jobs()
	out = map[string][]string{}
	for _, j := range jobs {
		for _, f := range j.Files {
			out[j.Name] = append(out[j.Name], strings.TrimPrefix(f.Path, "/logs/"))
		}
	}
	return out, strays, err
}

func TestSet_LogsOfTwoJobs_AreParted(t *testing.T) {
	two := func(name func(job string, rank int64) string, alike bool) logs {
		l := logs{}
		for j, job := range []string{"a", "b"} {
			for r := range int64(4) {
				ms := 600100 + 10*r
				if !alike {
					ms += 100 * int64(j)
				}
				text := "step 3\n"
				if job == "b" || r != 1 {
					text += waitsFor(r, 41, ms)
				}
				l[path.Join("/logs", name(job, r))] += text
			}
		}
		return l
	}
	for name, c := range map[string]struct {
		file  func(job string, rank int64) string
		alike bool // lines do not differ
		want  []string
	}{
		"by a beginning":              {func(j string, r int64) string { return fmt.Sprintf("%s_rank%d.log", j, r) }, true, []string{"logs/a", "logs/b"}},
		"by an end":                   {func(j string, r int64) string { return fmt.Sprintf("rank%d_%s.log", r, j) }, true, []string{"logs/a", "logs/b"}},
		"by a number":                 {func(j string, r int64) string { return fmt.Sprintf("%d-rank%d.log", 100+j[0], r) }, false, []string{"logs/197", "logs/198"}},
		"by a folder":                 {func(j string, r int64) string { return fmt.Sprintf("%s/n%d/rank%d.log", j, r/2, r) }, true, []string{"a", "b"}},
		"by a folder below nodes":     {func(j string, r int64) string { return fmt.Sprintf("n%d/%s/rank%d.log", r/2, j, r) }, true, []string{"a", "b"}},
		"by a beginning, below nodes": {func(j string, r int64) string { return fmt.Sprintf("n%d/%s_rank%d.log", r/2, j, r) }, true, []string{"logs/a", "logs/b"}},
		"of torchrun":                 {func(j string, r int64) string { return fmt.Sprintf("%s/attempt_0/%d/stderr.log", j, r) }, true, []string{"a", "b"}},
		"one file each":               {func(j string, _ int64) string { return fmt.Sprintf("slurm-%d.out", 100+j[0]) }, false, []string{"logs/slurm-197", "logs/slurm-198"}},
		"a file a node":               {func(j string, r int64) string { return fmt.Sprintf("%s_node%d.log", j, r/2) }, false, []string{"logs/a", "logs/b"}},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, strays, err := jobsOf(t, two(c.file, c.alike))
			require.NoError(t, err)
			assert.Empty(t, strays)
			require.Len(t, jobs, 2)
			for k, job := range []string{"a", "b"} {
				var want []string
				for r := range int64(4) {
					want = append(want, c.file(job, r))
				}
				slices.Sort(want)
				assert.Equal(t, slices.Compact(want), jobs[c.want[k]], "%v", jobs)
			}
		})
	}
}

// What the job's own lines say of it parts logs of different ranks, too.
func TestSet_LogsThatNameTwoJobs_AreParted(t *testing.T) {
	for name, lines := range map[string][2]string{
		"Slurm's job":     {"export SLURM_JOB_ID=11\n", "export SLURM_JOB_ID=12\n"},
		"a step of Slurm": {"slurmstepd: error: *** STEP 11.0 ON n1 CANCELLED AT 2026-11-16T10:00:00 ***\n", "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-16T10:00:00 ***\n"},
	} {
		t.Run(name, func(t *testing.T) {
			jobs, _, err := jobsOf(t, logs{"/logs/x.log": lines[0] + waitsFor(0, 41, 600100), "/logs/y.log": lines[1] + waitsFor(4, 41, 600200)})
			require.NoError(t, err)
			assert.Equal(t, map[string][]string{"logs/x": {"x.log"}, "logs/y": {"y.log"}}, jobs)
			assert.False(t, readAll(t, logs{"/logs/x.log": lines[0] + waitsFor(0, 41, 600100), "/logs/y.log": lines[0] + lines[1] + waitsFor(4, 41, 600200)}).Several())
		})
	}
	for _, same := range [][2]string{{"node1.site", "node1"}, {"localhost", "node1"}, {"10.0.0.1", "node1"}} {
		assert.False(t, readAll(t, logs{"/logs/x.log": "MASTER_ADDR=" + same[0] + "\n" + waitsFor(0, 41, 600100), "/logs/y.log": "MASTER_ADDR=" + same[1] + "\n" + waitsFor(4, 41, 600200)}).Several())
	}
}

func TestSet_LogsOfOneJob_AreNotParted(t *testing.T) {
	all := func(name func(rank int64) []string) logs {
		l := logs{}
		for r := range int64(4) {
			for k, file := range name(r) {
				text := "step 3\n"
				if r != 1 && (k == 0 || !strings.Contains(file, "stdout")) {
					text += waitsFor(r, 41, 600100+10*r)
				}
				l[path.Join("/logs", file)] += text
			}
		}
		return l
	}
	for name, file := range map[string]func(r int64) []string{
		"a node each":          func(r int64) []string { return []string{fmt.Sprintf("n%d/rank%d.log", r/2, r)} },
		"a node each, by name": func(r int64) []string { return []string{fmt.Sprintf("n%d_rank%d.log", r/2, r)} },
		"merged as well":       func(r int64) []string { return []string{fmt.Sprintf("rank%d.log", r), "job.out"} },
		"two streams": func(r int64) []string {
			return []string{fmt.Sprintf("rank%d.err", r), fmt.Sprintf("rank%d_stdout.log", r)}
		},
		"copies": func(r int64) []string {
			return []string{fmt.Sprintf("rank%d.log", r), fmt.Sprintf("old/rank%d.log", r)}
		},
		"process ids":       func(r int64) []string { return []string{fmt.Sprintf("rank%d_%d.log", r, 4711+r)} },
		"ranks in the node": func(r int64) []string { return []string{fmt.Sprintf("n%d/attempt_0/%d/stderr.log", r/2, r%2)} },
	} {
		t.Run(name, func(t *testing.T) {
			assert.False(t, readAll(t, all(file)).Several())
		})
	}
	t.Run("a log without its lines, which the merged one has", func(t *testing.T) {
		l := all(func(r int64) []string { return []string{fmt.Sprintf("rank%d.log", r), "job.out"} })
		l["/logs/rank3.log"] = "step 3\n"
		assert.False(t, readAll(t, l).Several())
	})
	t.Run("rotated", func(t *testing.T) {
		l := logs{}
		for r := range int64(4) {
			l[fmt.Sprintf("/logs/rank%d.log.1", r)] = waitsFor(r, 41, 600100+r)
			l[fmt.Sprintf("/logs/rank%d.log", r)] = waitsFor(r, 90, 600200+r)
			l[fmt.Sprintf("/logs/rank%d.log-20261120.gz", r)] = waitsFor(r, 30, 600300+r)
		}
		assert.False(t, readAll(t, l).Several())
	})
}

// Where nothing tells which logs are of which job, none is judged.
func TestSet_LogsThatCannotBeParted_AreRefused(t *testing.T) {
	for name, l := range map[string]logs{
		"numbers of processes": {"/logs/rank0_101.log": waitsFor(0, 41, 600100), "/logs/rank1_102.log": waitsFor(1, 41, 600110), "/logs/rank0_201.log": waitsFor(0, 41, 600200), "/logs/rank1_202.log": waitsFor(1, 41, 600210)},
		"another node's":       {"/logs/a_rank0.log": waitsFor(0, 41, 600100), "/logs/b_rank0.log": waitsFor(0, 41, 600200), "/logs/c_rank4.log": waitsFor(4, 41, 600110)},
		"one file, two labels": {"/logs/job.out": "[pod/a-0/t] " + strings.SplitN(waitsFor(0, 41, 600100), "\n", 2)[0] + "\n[pod/b-0/t] " + strings.SplitN(waitsFor(0, 41, 600200), "\n", 2)[0] + "\n[pod/a-0/t] [rank0]: step 3\n[pod/b-0/t] [rank0]: step 3\n"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := jobsOf(t, l)
			require.ErrorContains(t, err, "want the logs of one job")
		})
	}
}

// A log that no name gives to a job is left out of all.
func TestSet_LogOfNoJob_IsLeftOut(t *testing.T) {
	l := logs{"/logs/launcher.log": "failed\n", "/logs/a_launcher.log": "failed\n"}
	for k, job := range []string{"a", "b"} {
		for r := range int64(2) {
			l[fmt.Sprintf("/logs/%s_rank%d.log", job, r)] = waitsFor(r, 41, 600100+10*r+100*int64(k))
		}
	}
	jobs, strays, err := jobsOf(t, l)
	require.NoError(t, err)
	assert.Equal(t, []string{"/logs/launcher.log"}, strays)
	assert.Equal(t, []string{"a_launcher.log", "a_rank0.log", "a_rank1.log"}, jobs["logs/a"])
}

// Masters and sizes change between the attempts of an elastic job.
func TestSet_AttemptsOfAnElasticJob_AreOneJob(t *testing.T) {
	for name, lines := range map[string][2]string{
		"a node is replaced": {"  master_addr=n0\n", "  master_addr=n2\n"},
		"a node is lost":     {"  global_world_sizes=[24, 24]\n", "  global_world_sizes=[16, 16]\n"},
	} {
		assert.False(t, readAll(t, logs{"/logs/n1.log": lines[0] + lines[1] + waitsFor(0, 41, 600100), "/logs/n2.log": lines[1] + waitsFor(4, 41, 600200)}).Several(), name)
		assert.False(t, readAll(t, logs{"/logs/n0.log": lines[0], "/logs/n2.log": lines[1] + waitsFor(4, 41, 600200)}).Several(), name)
	}
}

// BenchmarkSeveral compares two copies of a merged log of 500 and of 1,000 ranks: the time may double.
func BenchmarkSeveral(b *testing.B) {
	of := func(ranks int64) *Set {
		var text strings.Builder
		for r := range ranks {
			text.WriteString(waitsFor(r, 41, 600100+r))
		}
		s := NewSet()
		for _, path := range []string{"/a/job.out", "/b/copy.out"} {
			require.NoError(b, s.Read(FileOf(path), strings.NewReader(text.String())))
		}
		return s
	}
	few, many := of(500), of(1000)
	b.ResetTimer()
	var least, most time.Duration
	for range b.N {
		start := time.Now()
		few.Several()
		middle := time.Now()
		many.Several()
		least, most = least+middle.Sub(start), most+time.Since(middle)
	}
	b.ReportMetric(float64(most)/float64(least), "ratio")
}
