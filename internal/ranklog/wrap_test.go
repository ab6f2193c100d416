// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// atColumn wraps each line as a terminal does. The prefix stands in front of the first piece, or of each.
func atColumn(text string, columns int, prefix string, each, trimmed bool) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		line := prefix + line
		for {
			n := min(len(line), columns)
			piece := line[:n]
			if line = line[n:]; trimmed {
				piece = strings.TrimRight(piece, " ")
			}
			b.WriteString(piece + "\n")
			if line == "" {
				break
			}
			if each {
				line = prefix + line
			}
		}
	}
	return b.String()
}

// atWords wraps each line between words.
func atWords(text string, columns int) string {
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		width := 0
		for i, word := range strings.Fields(line) {
			switch {
			case i > 0 && width+1+len(word) > columns:
				b.WriteString("\n")
				width = 0
			case i > 0:
				b.WriteString(" ")
				width++
			}
			b.WriteString(word)
			width += len(word)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// A message that a terminal wrapped is read as a whole.
func TestJudge_WrappedLines_AreReadAsWhole(t *testing.T) {
	pod := func(rank int64) string { return fmt.Sprintf("[pod/llama-pretrain-worker-%d/pytorch] ", rank) }
	wraps := map[string]func(rank int64, text string) string{
		"words at 100":                 func(_ int64, s string) string { return atWords(s, 100) },
		"kubectl, 120":                 func(r int64, s string) string { return atColumn(s, 120, pod(r), false, false) },
		"kubectl, 80, prefix of each":  func(r int64, s string) string { return atColumn(s, 80, pod(r), true, false) },
		"kubectl, 160, prefix of each": func(r int64, s string) string { return atColumn(s, 160, pod(r), true, false) },
		"a recording, spaces lost":     func(_ int64, s string) string { return atColumn(s, 110, "", false, true) },
	}
	for columns := 78; columns <= 168; columns += 9 {
		wraps[fmt.Sprintf("%d columns", columns)] = func(_ int64, s string) string { return atColumn(s, columns, "", false, false) }
	}
	for version, write := range versions {
		for name, wrap := range wraps {
			t.Run(version+" "+name, func(t *testing.T) {
				l := logs{}
				for r := range int64(6) {
					text := write(inDefault(r))
					if r == 4 {
						text = fmt.Sprintf(outOfMemory, 4, 4)
					}
					if r == 1 {
						odd := inDefault(1)
						odd.seq, odd.numIn, odd.out = 41, 262144, 262144
						text = write(odd)
					}
					l[fmt.Sprintf("rank%d.log", r)] = wrap(r, "step 40 loss 2.1\n"+text)
				}
				r := l.judge(t, Options{WorldSize: 6})
				f := assertRoot(t, r, 4, model.ClassProcessDead, "all_reduce 41")
				assert.Equal(t, []int64{0, 1, 2, 3, 5}, f.Waiting)
			})
		}
	}
}

// A log of all ranks that a terminal wrapped is read by rank.
func TestJudge_WrappedMergedLog_IsReadByRank(t *testing.T) {
	for _, columns := range []int{80, 97, 120, 160} {
		for _, version := range []string{"2.3", "2.4", "2.14"} {
			var b strings.Builder
			for r := range int64(6) {
				s := inDefault(r)
				if s.seq = 15227890; r == 3 {
					fmt.Fprintf(&b, outOfMemory, 3, 3)
					continue
				}
				b.WriteString(versions[version](s))
			}
			r := logs{"job.out": atColumn(b.String(), columns, "", false, false)}.judge(t, Options{WorldSize: 6})
			f := assertRoot(t, r, 3, model.ClassProcessDead, "all_reduce 15227890")
			assert.Equal(t, []int64{0, 1, 2, 4, 5}, f.Waiting, "%d %s", columns, version)
		}
	}
}

// Where the rest of a message is missing, its cut numbers are not read.
func TestParse_MessageThatIsCut_HasNoNumbers(t *testing.T) {
	for _, line := range []string{
		"[rank5]:[E x.cpp:607] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=15",
		"[rank5]:[E x.cpp:607] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1522789, OpType=ALLREDUCE, NumelIn=29",
		"[rank5]:[E x.cpp:2395] [PG ID 0 PG GUID 0(default_pg) Rank 5]  failure detected by watchdog at work sequence id: 4",
		"[rank5]:[E x.cpp:1537] [PG 0 Rank 5] Timeout at NCCL work: 15",
	} {
		assert.False(t, parse([]byte(line)).hasWork, line)
	}
}

// A traceback that a terminal wrapped within the message is known by its beginning.
func TestJudge_WrappedTraceback_IsRead(t *testing.T) {
	for _, columns := range []int{80, 100, 120, 160} {
		text := ""
		for r := range int64(4) {
			if r != 1 {
				text += fmt.Sprintf("[rank%[1]d]: Traceback (most recent call last):\n[rank%[1]d]: torch.distributed.DistBackendError: [Rank %[1]d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4596, OpType=_ALLGATHER_BASE, NumelIn=896, NumelOut=3584, Timeout(ms)=1800000) ran for 1800002 milliseconds before timing out.\n", r)
			}
		}
		text = atColumn(text, columns, "", false, false)
		assert.True(t, Sniff(strings.NewReader(text)), columns)
		r := logs{"job.out": text}.judge(t, Options{WorldSize: 4})
		ranks, candidates := named(r)
		assert.Empty(t, ranks)
		assert.Equal(t, []int64{1}, candidates, columns)
	}
}

// An error that ended a watchdog is read as a whole, too.
func TestJudge_WrappedEndOfAWatchdog_IsRead(t *testing.T) {
	for columns := 78; columns <= 200; columns += 7 {
		for version, write := range watchdogEnds {
			if version == "what, alone" {
				continue
			}
			for e, want := range map[string]string{illegal: model.ClassProcessDead, "CUDA error: driver shutting down": "", "NCCL error: remote process exited or there was a network error, NCCL version 2.21.5": ""} {
				l := files(versions["2.14"], 4, map[int64]string{2: atColumn("UserWarning: "+strings.Repeat("long ", 100)+"\n"+write(2, "10:00:00.100", e)+"CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n", columns, "", false, false)})
				r := l.judge(t, Options{WorldSize: 4})
				require.Len(t, r.Roots, 1)
				if want == "" {
					assert.NotEqual(t, model.ClassProcessDead, r.Roots[0].Finding.Class, "%d %s %s", columns, version, e)
					continue
				}
				assert.Equal(t, want, r.Roots[0].Finding.Class, "%d %s %s", columns, version, e)
			}
		}
	}
}

// A warning of a process group is no hang.
func TestSniff_WarningOfAProcessGroup_IsNone(t *testing.T) {
	for _, line := range []string{
		"[rank5]:[W1116 10:00:00.1 ProcessGroupNCCL.cpp:1250] Warning: process group has NOT been destroyed before we destruct ProcessGroupNCCL.",
		"[rank0]:[I1116 10:00:00.1 ProcessGroupNCCL.cpp:757] ProcessGroupNCCL initialization options: size: 8", "loss[r", "[rank0]: step 1", "see Watchdog caught collective operation timeout", "[rank0]: Rank 0 is ready",
	} {
		assert.False(t, Sniff(strings.NewReader(line+"\n")), line)
	}
}

// Lines of other messages are not joined.
func TestSet_LinesBehindAMessage_AreReadEach(t *testing.T) {
	const failed = "[rank3]:[E ProcessGroupNCCL.cpp:577] [Rank 3] Some NCCL operations have failed or timed out.\n"
	l := files(versions["2.14"], 4, map[int64]string{3: failed + "Traceback (most recent call last):\n  File \"x.py\", line 3\nValueError: bad sample\n"})
	f := assertRoot(t, l.judge(t, Options{WorldSize: 4}), 3, model.ClassProcessDead, "all_reduce 41")
	assert.Contains(t, evidence.Encode(f.Evidence), "rank3_stderr.log:4")
}

// A line in which a program names its rank is held for no message: each would be joined with those behind it.
func TestBeginsMessage_LineOfAProgramWithItsRank_IsNone(t *testing.T) {
	for _, line := range []string{
		"2026-11-16 10:00:00 [trainer]: Rank 1 step 0 loss 1.00000", "[eval]: Rank 12, batch 7 of 9", "[rank3]: Rank 3 finished epoch 2", "[x]: Ranks 0, 1 are on node n1", "[x]: Rank 1 time per step 0.3 s",
	} {
		assert.False(t, beginsMessage([]byte(line)), line)
	}
	for _, line := range []string{"[Rank 0]: Ranks 3, 5 failed to", "[rank0]: RuntimeError: [Rank 0]: Rank", "[Rank 0]: Rank 3", "[Rank 0]: Ranks 3, 1"} {
		assert.True(t, beginsMessage([]byte(line)), line)
	}
}
