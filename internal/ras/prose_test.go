// SPDX-License-Identifier: Apache-2.0

package ras

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

func prose(t *testing.T, text string) *Status {
	t.Helper()
	all, err := ParseAnswers(strings.NewReader(text), 1<<20)
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

// launched lists the counts of a function by rank; -1 where there is none.
func launched(c *Comm, fn string) []int64 {
	out := make([]int64, c.Size)
	for i := range out {
		out[i] = -1
	}
	for i := range c.Ranks {
		for _, n := range c.Ranks[i].Counts {
			if n.Func == fn {
				out[c.Ranks[i].Rank] = n.N
			}
		}
	}
	return out
}

func TestParseAnswers_Counts_OfAllMembers(t *testing.T) {
	rank := func(n int, what string) string {
		return "  Rank " + string(rune('0'+n)) + what + " -- GPU " + string(rune('0'+n)) + " managed by process 70" + string(rune('0'+n)) + " on node fd00::1\n"
	}
	for name, tc := range map[string]struct {
		size     int
		lines    string
		want     []int64
		unlisted string
	}{
		"one is behind": {4, "  3 ranks have launched up to operation 9\n" + rank(2, " has launched up to operation 8"), []int64{9, 9, 8, 9}, ""},
		"one is behind, in a list of its own": {
			4, "  3 ranks have launched up to operation 9\n  1 ranks have launched up to operation 8\n" + rank(2, ""), []int64{9, 9, 8, 9}, "",
		},
		"one has launched none":                 {3, "  2 ranks have launched up to operation 9\n" + rank(1, " has not launched any operations"), []int64{9, 0, 9}, ""},
		"several have launched none":            {4, "  2 ranks have launched up to operation 9\n  2 ranks have not launched any operations\n" + rank(1, "") + rank(3, ""), []int64{9, 0, 9, 0}, ""},
		"all are listed":                        {2, rank(1, " has launched up to operation 4") + rank(0, " has launched up to operation 3"), []int64{3, 4}, ""},
		"three counts":                          {6, "  4 ranks have launched up to operation 9\n" + rank(5, " has launched up to operation 8") + rank(0, " has launched up to operation 7"), []int64{7, 9, 9, 9, 9, 8}, ""},
		"a range of ranks":                      {6, "  4 ranks have launched up to operation 9\n  2 ranks have launched up to operation 8\n  Ranks 1-2 -- [process information not found]\n", []int64{9, 8, 8, 9, 9, 9}, ""},
		"neither is listed":                     {4, "  2 ranks have launched up to operation 9\n  2 ranks have launched up to operation 8\n", []int64{-1, -1, -1, -1}, "launches of AllGather: 2 ranks 9, 2 ranks 8"},
		"fewer than there are":                  {8, "  3 ranks have launched up to operation 9\n" + rank(2, " has launched up to operation 8"), []int64{-1, -1, -1, -1, -1, -1, -1, -1}, "launches of AllGather: 3 ranks 9, rank 2 8"},
		"a process that nobody knows is behind": {3, "  2 ranks have launched up to operation 9\n  Rank 0 has launched up to operation 8 -- [process information not found]\n", []int64{8, 9, 9}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := prose(t, rastest.Report(tc.size, "", "#0-0 (00000000000000ab) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"+tc.lines))
			require.Len(t, s.Comms, 1)
			c := &s.Comms[0]
			assert.Equal(t, uint64(0xab), c.Hash)
			assert.Equal(t, tc.size, c.Size)
			assert.Equal(t, tc.want, launched(c, "AllGather"))
			assert.Equal(t, tc.unlisted, strings.Join(c.Unlisted, "; "))
			assert.Equal(t, tc.size, s.GPUs)
			assert.Equal(t, "2.26.2", s.NCCLVersion)
		})
	}
}

func TestParseAnswers_RankLine_NamesItsProcess(t *testing.T) {
	s := prose(t, rastest.Report(4, "", "#0-0 (ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n"+
		"  3 ranks have launched up to operation 9\n  Rank 2 has launched up to operation 8 -- GPU 1 (NVML 5) managed by process 3002 on node 10.0.0.1\r\n"))
	c := &s.Comms[0]
	require.Len(t, c.Ranks, 4)
	at := 0
	for i := range c.Ranks {
		if c.Ranks[i].Rank == 2 {
			at = i
		}
	}
	assert.Equal(t, Process{Rank: 2, Host: "10.0.0.1", PID: 3002, CUDADev: 1}, c.Ranks[at].Process)
	assert.Equal(t, "process 3002 on 10.0.0.1, GPU 1", c.Ranks[at].Text())
}

func TestParseAnswers_MissingRanks_DeadOrNot(t *testing.T) {
	s := prose(t, rastest.Report(4,
		"INCOMPLETE\n  Missing communicator data from 1 job process\n  Process 31 on node n1 managing GPU 1\n\n"+
			"DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n  Process 32 on node n1 managing GPU 2\n\n"+
			"#0-0 (ab) INCOMPLETE\n  Missing communicator data from 2 ranks\n  Rank 1 -- GPU 1 managed by process 31 on node n1\n  Rank 2 -- GPU 2 managed by process 32 on node n1\n\n"+
			"#0-0 (ab) ERROR\n  Asynchronous error on 1 rank\n  Rank 3 reported System error -- GPU 3 managed by process 33 on node n1\n\n",
		"#0-0 (ab) MISMATCH\n  Communicator ranks have different status\n  2 ranks have status RUNNING\n  Rank 0 has status ABORT -- GPU 0 managed by process 30 on node n1\n"))
	require.Len(t, s.Comms, 1)
	c := &s.Comms[0]
	require.Len(t, c.Missing, 2)
	assert.True(t, c.Missing[0].Unresponsive)
	assert.False(t, c.Missing[0].ConsideredDead)
	assert.True(t, c.Missing[1].ConsideredDead)
	by := map[int]Errors{}
	for i := range c.Ranks {
		by[c.Ranks[i].Rank] = c.Ranks[i].Errors
	}
	assert.Equal(t, map[int]Errors{0: {AbortFlag: true}, 3: {AsyncError: 2}}, by)
}

func TestParseAnswers_NoMember_OfTheCommunicator(t *testing.T) {
	s := prose(t, rastest.Report(3, "", "#0-0 (ab) MISMATCH\n  Communicator ranks have different status\n  2 ranks have status RUNNING\n"+
		"  Rank 1 has status NOCOMM -- GPU 1 managed by process 31 on node n1\n"))
	require.Len(t, s.Comms[0].Missing, 1)
	m := s.Comms[0].Missing[0]
	assert.False(t, m.Unresponsive || m.ConsideredDead, "it answers")
	assert.Equal(t, 31, m.PID)
}

func TestParseAnswers_SeveralAnswers_InTheirOrder(t *testing.T) {
	one := rastest.Report(2, "", "#0-0 (ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  Rank 0 has launched up to operation 2 -- GPU 0 managed by process 1 on node a\n  Rank 1 has launched up to operation 1 -- GPU 1 managed by process 2 on node a\n")
	all, err := ParseAnswers(strings.NewReader("$ ncclras\n"+one+"\n$ ncclras\n"+rastest.Report(2, "", "")), 1<<20)
	require.NoError(t, err)
	require.Len(t, all, 2)
	assert.Len(t, all[0].Comms, 1)
	assert.Empty(t, all[1].Comms)
}

func TestParseAnswers_Refused(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"nothing of it":   {"hello\n", `got no answer; want the output of ncclras`},
		"without a table": {"NCCL version 2.26.2 compiled with CUDA 12.6\n#0-0 (ab) MISMATCH\n", "line 2: read communicator ab: got no group 0"},
		"a rank too many": {rastest.Report(2, "", "#0-0 (ab) MISMATCH\n  Rank 2 has launched up to operation 1 -- GPU 1 managed by process 2 on node a\n"), `got rank "2"; want 0 to 1`},
		"a count beyond":  {rastest.Report(2, "", "#0-0 (ab) MISMATCH\n  2 ranks have launched up to operation 99999999999999999999\n"), "read launches"},
		"a rank of none":  {rastest.Report(2, "", "#0-0 (ab) MISMATCH\n  Rank 1 -- GPU 1 managed by process 2 on node a\n"), "got rank 1 without what it has"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseAnswers(strings.NewReader(tc.text), 1<<20)
			require.ErrorContains(t, err, tc.want)
		})
	}
	_, err := ParseAnswers(strings.NewReader(rastest.Report(2, "", "")), 100)
	require.ErrorContains(t, err, "got more than 100 bytes")
}

func FuzzParseAnswers(f *testing.F) {
	f.Add(rastest.Report(4, "DEAD\n  Process 32 on node n1 managing GPU 2\n#0-0 (ab) INCOMPLETE\n  Rank 2 -- GPU 2 managed by process 32 on node n1\n",
		"#0-0 (ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  2 ranks have launched up to operation 9\n  Rank 0 has launched up to operation 8 -- GPU 1 (NVML 5) managed by process 3002 on node 10.0.0.1\n"))
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseAnswers(strings.NewReader(text), 1<<20)
		if err != nil {
			return
		}
		for _, s := range all {
			for _, l := range Layouts(s) {
				j := l.Job(s, Origin{From: "f", Saved: true})
				for i := range j.States {
					if j.States[i].Rank.Rank < 0 {
						t.Errorf("rank %d", j.States[i].Rank.Rank)
					}
				}
			}
		}
	})
}

func TestParseAnswers_CutInFrontOfItsWarnings_IsSeen(t *testing.T) {
	const table = "NCCL version 2.26.2 compiled with CUDA 12.6\nJob summary\n  Nodes  Processes\n      2          4            1          8        8\n" +
		"Group     Comms\n    0         1         2         4         8         8   RUNNING  "
	const warning = "#0-0 (fa93daea854b060b) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"
	for text, cut := range map[string]bool{
		table + "OK\n": false, table + "MISMATCH\n": true, table + "INCOMPLETE,MISMATCH\n": true, table + "MISMATCH\n" + warning: true,
		table + "MISMATCH\n" + warning + "  7 ranks have launched up to operation 641\n  1 ranks have launched up to operation 640\n  Rank 2 -- GPU 2 managed by process 3002 on node n1\n": false,
	} {
		all, err := ParseAnswers(strings.NewReader(text), 1<<20)
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.Equal(t, cut, all[0].Cut(), text)
	}
}

// Members that do not answer, as NVIDIA's guide shows them: by rank alone. The process is known where one of each is.
func TestParseAnswers_MissingRank_ByNumberAlone(t *testing.T) {
	const one = "  Missing communicator data from 1 rank\n  The missing rank: 5\n"
	const two = "  Missing communicator data from 2 ranks\n  The missing ranks: 2, 5\n"
	const three = "  Missing communicator data from 3 ranks\n  The missing ranks: 1-2, 5\n"
	section := func(name string, pids ...string) string {
		out := name + "\n  N job processes are so\n"
		for _, pid := range pids {
			out += "  Process " + pid + " on node n1 managing GPU 3\n"
		}
		return out + "\n"
	}
	for name, tc := range map[string]struct {
		job, lines string
		ranks      []int
		dead       bool
		pid        int
	}{
		"nothing says more":          {"", one, []int{5}, false, -1},
		"one is dead":                {section("DEAD", "31"), one, []int{5}, true, 31},
		"one does not answer":        {section("INCOMPLETE", "31"), one, []int{5}, false, 31},
		"carriage returns":           {section("DEAD", "31"), strings.ReplaceAll(one, "\n", "\r\n"), []int{5}, true, 31},
		"one is dead, in two lists":  {section("INCOMPLETE", "31") + section("DEAD", "31"), one, []int{5}, true, 31},
		"two are dead":               {section("DEAD", "31", "32"), two, []int{2, 5}, true, -1},
		"one of two dead is missing": {section("DEAD", "31", "32"), one, []int{5}, true, -1},
		"one of two is dead":         {section("INCOMPLETE", "31") + section("DEAD", "32"), two, []int{2, 5}, false, -1},
		"more than are dead":         {section("DEAD", "31"), two, []int{2, 5}, false, -1},
		"a span":                     {"", three, []int{1, 2, 5}, false, -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := prose(t, rastest.Report(8, tc.job+"#0-0 (ab) INCOMPLETE\n"+tc.lines, ""))
			assert.False(t, s.Cut())
			require.Len(t, s.Comms, 1)
			require.Len(t, s.Comms[0].Missing, len(tc.ranks))
			for i, m := range s.Comms[0].Missing {
				assert.Equal(t, tc.ranks[i], m.Rank)
				assert.True(t, m.Unresponsive)
				assert.Equal(t, tc.dead, m.ConsideredDead)
				assert.Equal(t, tc.pid, m.PID)
				if tc.pid >= 0 {
					assert.Equal(t, "process 31 on n1, GPU 3", m.Text())
				}
			}
		})
	}
	_, err := ParseAnswers(strings.NewReader(rastest.Report(8, "#0-0 (ab) INCOMPLETE\n  The missing rank: 8\n", "")), 1<<20)
	assert.ErrorContains(t, err, `got rank "8"; want 0 to 7`)
}

func TestParseAnswers_DeadProcesses_WithoutCommunicators(t *testing.T) {
	report := rastest.Report(8, "DEAD\n  2 job processes are considered dead (unreachable via the RAS network)\n"+
		"  Process 31 on node n1 managing GPU 3\n  Process 32 on node fd00::2 managing GPUs 0,1\n\n", "")
	from, to := strings.Index(report, "Group "), strings.Index(report, "Errors\n===")
	s := prose(t, report[:from]+"No communicator data collected!\n\n"+report[to:])
	assert.False(t, s.Cut())
	assert.True(t, s.Empty())
	var texts []string
	for i := range s.Dead {
		texts = append(texts, s.Dead[i].Text())
	}
	assert.Equal(t, []string{"process 31 on n1, GPU 3", "process 32 on fd00::2, GPU 0", "process 32 on fd00::2, GPU 1"}, texts)
}
