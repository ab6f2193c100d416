// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/ras/rastest"
)

// answerText is what ncclras prints of a job of four ranks of which rank 1 is behind.
func answerText() string {
	return rastest.Report(4, "", "#0-0 (00000000000000ab) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"+
		"  3 ranks have launched up to operation 77\n  Rank 1 has launched up to operation 76 -- GPU 1 managed by process 4001 on node 10.9.0.1\n")
}

func answerJSON() string {
	c := rastest.Comm{Hash: 0xab}
	for i := range 4 {
		c.Members = append(c.Members, rastest.Member{Rank: i, PID: 4000 + i, Host: "10.9.0.1", AllGather: 77})
	}
	c.Members[1].AllGather = 76
	return rastest.JSON(c)
}

func putAnswer(t *testing.T, dir, name, text string, at time.Time) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chtimes(path, at, at))
	return path
}

func TestAnalyze_AnswersOfRAS(t *testing.T) {
	at := time.Unix(1_790_000_000, 0)
	for name, tc := range map[string]struct {
		files  map[string]string
		apart  time.Duration // of the times of the files
		status int
		says   string
	}{
		"text":                     {map[string]string{"out": answerText()}, 0, exitFindings, "a second ncclras some seconds later"},
		"text behind a prompt":     {map[string]string{"out.log": "$ ncclras -v\n" + answerText()}, 0, exitFindings, "a second ncclras some seconds later"},
		"JSON":                     {map[string]string{"a.json": answerJSON()}, 0, exitFindings, "a second ncclras some seconds later"},
		"both of one moment":       {map[string]string{"a.json": answerJSON(), "a.txt": answerText()}, 0, exitFindings, "a second ncclras some seconds later"},
		"two of 30 s":              {map[string]string{"1.txt": answerText(), "2.txt": answerText()}, 30 * time.Second, exitFindings, "rank 1: desync (not_scheduled)"},
		"text and JSON, 30 s":      {map[string]string{"1.txt": answerText(), "2.json": answerJSON()}, 30 * time.Second, exitFindings, "rank 1: desync (not_scheduled)"},
		"nothing differs, in text": {map[string]string{"1.txt": rastest.Report(4, "", "")}, 0, exitUnusable, "launched the same operations"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, i := t.TempDir(), 0
			for _, file := range []string{"1.txt", "2.txt", "2.json", "a.json", "a.txt", "out", "out.log"} {
				if text, ok := tc.files[file]; ok {
					putAnswer(t, dir, file, text, at.Add(time.Duration(i)*tc.apart))
					i++
				}
			}
			status, stdout, stderr := call("analyze", dir)
			assert.Equal(t, tc.status, status, stderr)
			said := strings.Join(strings.Fields(stdout), " ")
			assert.Contains(t, said, tc.says)
			if !strings.Contains(name, "nothing") {
				assert.Contains(t, said, "AllGather: 3 ranks launched 77, rank 1 76")
				assert.Contains(t, said, "process 4001 on 10.9.0.1, GPU ")
			}
		})
	}
}

func TestAnalyze_AnswersOfRAS_AsJSON(t *testing.T) {
	path := putAnswer(t, t.TempDir(), "a.json", answerJSON(), time.Now())
	_, stdout, _ := call("analyze", "--json", path)
	var out struct {
		Hangs []struct {
			Verdict string `json:"verdict"`
			Answers int    `json:"ras_answers"`
			Roots   []struct {
				Finding map[string]any `json:"finding"`
			} `json:"roots"`
		} `json:"hangs"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &out))
	require.Len(t, out.Hangs, 1)
	assert.Equal(t, "undecided", out.Hangs[0].Verdict)
	assert.Equal(t, 1, out.Hangs[0].Answers)
	require.Len(t, out.Hangs[0].Roots, 1)
	assert.EqualValues(t, 1, out.Hangs[0].Roots[0].Finding["lockstep.finding.rank"])
}

func TestAnalyze_DamagedAnswers_AreNamed(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"JSON that is cut":     {answerJSON()[:700], "answer 1, from byte 0: the file is cut off within it"},
		"text without a table": {"NCCL version 2.26.2 compiled with CUDA 12.6\n#0-0 (ab) MISMATCH\n", "want the whole output of ncclras"},
	} {
		t.Run(name, func(t *testing.T) {
			path := putAnswer(t, t.TempDir(), "ras", tc.text, time.Now())
			status, stdout, stderr := call("analyze", path)
			assert.Equal(t, exitUnusable, status)
			said := strings.Join(strings.Fields(stdout+stderr), " ")
			assert.Contains(t, said, path[len(path)-4:])
			assert.Contains(t, said, tc.want)
		})
	}
}

// jsonAt is an answer in JSON that was given some seconds past ten.
func jsonAt(second string) string {
	return strings.Replace(answerJSON(), "10:00:00", "10:00:"+second, 1)
}

func TestAnalyze_SeveralAnswersOfOneFile_AreOfSeveralTimes(t *testing.T) {
	flat := func(second string) string { return strings.ReplaceAll(jsonAt(second), "\n", " ") }
	for name, text := range map[string]string{
		"one behind another": jsonAt("00") + jsonAt("20"),
		"one a line":         flat("00") + "\n" + flat("20") + "\n",
		"a list":             "[" + jsonAt("00") + ", " + jsonAt("20") + "]",
		"behind prompts":     "$ ncclras -f json\n" + jsonAt("00") + "$ ncclras -f json\n" + jsonAt("20"),
	} {
		for _, file := range []string{"ras.json", "ras.jsonl", "ras.txt", "ras"} {
			t.Run(name+" in "+file, func(t *testing.T) {
				status, stdout, stderr := call("analyze", putAnswer(t, t.TempDir(), file, text, time.Now()))
				assert.Equal(t, exitFindings, status, stderr)
				said := strings.Join(strings.Fields(stdout), " ")
				assert.Contains(t, said, "rank 1: desync (not_scheduled)")
				assert.NotContains(t, said, "Cannot tell whether")
				assert.Contains(t, said, "1 file, 2 answers")
			})
		}
	}
}

// What is whole of a file that is cut counts, and the call fails.
func TestAnalyze_AnswersBeforeACut_Count(t *testing.T) {
	same := strings.ReplaceAll(answerJSON(), `"AllGather": 76`, `"AllGather": 77`)
	for name, text := range map[string]string{"one behind another": same + same + same[:900], "a list": "[" + same + "," + same} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := call("analyze", putAnswer(t, t.TempDir(), "ras.json", text, time.Now()))
			assert.Equal(t, exitUnusable, status)
			said := strings.Join(strings.Fields(stdout+stderr), " ")
			assert.Contains(t, said, "1 file, 2 answers")
			assert.Contains(t, said, "cut off")
		})
	}
}

// What ncclras printed instead of an answer is refused by name, alone and beside an answer.
func TestAnalyze_NoAnswerOfRAS_IsNamed(t *testing.T) {
	_, rest, _ := strings.Cut(answerText(), "#0-0")
	part := "#0-0" + rest
	for name, tc := range map[string]struct{ text, want string }{
		"refused": {"Connecting to 127.0.0.1:28028: Connection refused\nFailed to connect to the NCCL RAS service!\n", "Connection refused"},
		"a part":  {part, "#0-0 (00000000000000ab) MISMATCH"},
	} {
		for _, file := range []string{"2.json", "2.txt", "2"} {
			t.Run(name+" in "+file, func(t *testing.T) {
				dir := t.TempDir()
				path := putAnswer(t, dir, file, tc.text, time.Now())
				for _, target := range []string{path, dir} {
					status, stdout, stderr := call("analyze", target)
					assert.Equal(t, exitUnusable, status)
					said := strings.Join(strings.Fields(stdout+stderr), " ")
					assert.Contains(t, said, file)
					assert.Contains(t, said, tc.want)
					assert.Contains(t, said, "ncclras -v")
					assert.NotContains(t, said, "invalid character")
				}
				putAnswer(t, dir, "1.txt", rastest.Report(4, "", ""), time.Now())
				status, stdout, stderr := call("analyze", dir)
				assert.Equal(t, exitUnusable, status)
				assert.Contains(t, strings.Join(strings.Fields(stdout+stderr), " "), tc.want)
			})
		}
	}
}
