// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A job has the name of its run, of the folder of its logs or of that which was given, never that of a rank, of an
// attempt or of a container.
func TestAnalyzeLogs_NameOfTheJob_IsThatOfTheRunOrTheFolder(t *testing.T) {
	for name, c := range map[string]struct{ file, given, want string }{
		"torchrun's run":                 {"logs/pretrain_a1b2c3d4/attempt_0/%d/stderr.log", "logs", "pretrain"},
		"a later attempt":                {"logs/sft_run_9zk_q3x7/attempt_2/%d/stderr.log", "logs", "sft_run"},
		"the attempt was given":          {"logs/abc_1/attempt_0/%d/stderr.log", "logs/abc_1/attempt_0", "abc_1"},
		"one rank was given":             {"logs/abc_1/attempt_0/%d/stderr.log", "logs/abc_1/attempt_0/0", "abc_1"},
		"a run without an id":            {"exp7/none_k3j2h1g0/attempt_1/%d/stderr.log", "exp7", "exp7"},
		"a run without an id, alone":     {"exp8/none_k3j2h1g0/attempt_0/%d/stderr.log", "exp8/none_k3j2h1g0", "exp8"},
		"folders of ranks":               {"run7/%d/stderr.log", "run7", "run7"},
		"a folder of a rank, alone":      {"run7/%d/stderr.log", "run7/0", "run7"},
		"pods":                           {"cluster/pods/ml_job-worker-%d_uid/pytorch/0.log", "cluster", "cluster"},
		"a folder of copies":             {"mine/old/rank_%d.log", "mine/old", "old"},
		"a folder below that was given":  {"runs/jobA/rank_%d.log", "runs", "jobA"},
		"files of one folder were given": {"jobB/rank_%d.log", "jobB/rank_*.log", "jobB"},
		"a folder rank_0, alone":         {"run8/rank_%d/log.txt", "run8/rank_0", "run8"},
		"folders of ranks by a pattern":  {"jobC/%d/stderr.log", "jobC/*/stderr.log", "jobC"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for r := range 4 {
				putFile(t, timedOut(r), root, fmt.Sprintf(c.file, r))
			}
			_, stdout, _ := call("analyze", "--json", filepath.Join(root, c.given))
			var r output
			require.NoError(t, json.Unmarshal([]byte(stdout), &r))
			require.Len(t, r.Hangs, 1)
			assert.Equal(t, c.want, r.Hangs[0].Job)
		})
	}
}

// Logs of two folders below the one that was given, of which one has copies of the other, are named by the first.
func TestAnalyzeLogs_NameOfTheJob_IsNotThatOfASubfolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "train")
	for r := range 4 {
		putFile(t, timedOut(r), root, fmt.Sprintf("rank_%d.log", r))
		putFile(t, timedOut(r), root, "old", fmt.Sprintf("rank_%d.log", r))
	}
	require.DirExists(t, root)
	_, stdout, _ := call("analyze", "--json", root+string(os.PathSeparator))
	var r output
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Len(t, r.Hangs, 1)
	assert.Equal(t, "train", r.Hangs[0].Job)
}
