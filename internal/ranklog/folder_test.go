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

// The error of a log without a mark of its rank is that of the rank that the folder names.
func TestJudge_FolderNamesTheRank_HasItsError(t *testing.T) {
	for _, name := range []string{"run/rank_%d/log.txt", "run/rank%d/stderr.log", "run/Rank-%d/train.out", "run/global_rank_%d/log", "run/worker-%d/log.txt", "run/%d/log.txt"} {
		s := NewSet()
		for r := range int64(8) {
			text := versions["2.14"](inDefault(r))
			if r == 2 {
				text = "step 40\nTraceback (most recent call last):\n  File \"train.py\", line 3, in <module>\ntorch.OutOfMemoryError: CUDA out of memory.\n"
			}
			require.NoError(t, s.Read(FileOf(fmt.Sprintf(name, r)), strings.NewReader(text)))
		}
		f := assertRoot(t, s.Judge(Options{Job: "job", WorldSize: 8, Engine: desync.NewDefaultConfig()}), 2, model.ClassProcessDead, "all_reduce 41")
		assert.Contains(t, evidence.Encode(f.Evidence), fmt.Sprintf(name, 2), name)
	}
}

// Folders of nodes and of ranks within a node name no rank of the job.
func TestFolderRank_OfOthers_IsNone(t *testing.T) {
	for _, folder := range []string{"node_rank_1", "node1", "local_rank_3", "attempt_0", "step_40", "rank", "2026-11-29", "run7", "1e3"} {
		_, _, ok := FolderRank(folder)
		assert.False(t, ok, folder)
	}
}
