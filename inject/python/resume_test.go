// SPDX-License-Identifier: Apache-2.0

package python

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/epoch/replica"
	"github.com/lockstep-otel/lockstep/internal/epoch/resume"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/otelmap/resumemap"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// resuming is a program that joins its group, says what it has loaded, and goes on with its second
// step when it is told to.
const resuming = `
import random, sys
from lockstep_scope import resumed, rng_digest, step
from lockstep_scope.library import LIBRARY

rank, loaded, seed = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
assert LIBRARY.group_open(0xfeed, 3, rank, b"world")
random.seed(seed)
resumed(loaded, optimizer_step=loaded, data_cursor=f"sample {loaded * 64}", rng_digest=rng_digest(), replica=0)
step(loaded)
print("resumed", flush=True)
sys.stdin.read()
`

// flipped is a program whose parameters differ in one bit on the rank that it is told of.
const flipped = `
import sys, torch
from lockstep_scope import fingerprint
from lockstep_scope.library import LIBRARY

rank, flip = int(sys.argv[1]), sys.argv[2] == "1"
assert LIBRARY.group_open(0xfeed, 3, rank, b"world")
torch.manual_seed(7)
model = torch.nn.Linear(100, 50)
fingerprint(model.parameters(), 100, group="dp", replicas=3, elements=1000)
if flip:
    model.weight.data.view(torch.int32)[40, 2] ^= 1 << 13
for step in range(101, 1301):
    fingerprint(model.parameters(), step, group="dp", replicas=3, elements=1000)
print("resumed", flush=True)
sys.stdin.read()
`

// job is processes that have resumed, each from a step and with a seed of its own, and wait.
func job(t *testing.T, loaded, seeds [3]int) (rings string) {
	t.Helper()
	return jobOf(t, resuming, loaded, seeds)
}

// jobOf is processes of a program, each with a rank and two arguments of its own, that wait.
func jobOf(t *testing.T, program string, first, second [3]int) (rings string) {
	t.Helper()
	python, lib, rings := interpreter(t), library(t), t.TempDir()
	for rank := range first {
		cmd := exec.Command(python, "-B", "-c", program, fmt.Sprint(rank), fmt.Sprint(first[rank]), fmt.Sprint(second[rank]))
		cmd.Env = append(os.Environ(), "PYTHONPATH=.", "LOCKSTEP_LIBRARY="+lib, "LOCKSTEP_DIR="+rings, "LOCKSTEP_JOB_ID=job-7",
			fmt.Sprintf("LOCKSTEP_RANK=%d", rank), "LOCKSTEP_WORLD_SIZE=3", "LOCKSTEP_RING_LANES=4")
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = stdin.Close()
			assert.NoError(t, cmd.Wait(), "rank %d", rank)
		})
		line, err := bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "resumed\n", line)
	}
	return rings
}

// read reads the rings once, as the receiver does, and has what they tell go the way that log events
// go.
func read(t *testing.T, rings string, event func(pcommon.Resource, plog.LogRecord)) {
	t.Helper()
	paths, refused := ring.Discover(rings, ring.Options{})
	require.Empty(t, refused)
	require.Len(t, paths, 3)
	node := rankevents.NewNode(rankevents.DefaultConfig())
	for _, path := range paths {
		r, err := ring.Open(path, ring.Options{})
		require.NoError(t, err)
		node.Attach(r, "").Pass(ring.Now(), func(b *rankevents.Batch) {
			ld := plog.NewLogs()
			for i := range b.Resumes {
				resumemap.Append(ld, &b.Resumes[i])
			}
			resumemap.AppendFingerprints(ld, &b.Rank, b.Fingerprints)
			for _, rl := range ld.ResourceLogs().All() {
				for _, lr := range rl.ScopeLogs().At(0).LogRecords().All() {
					event(rl.Resource(), lr)
				}
			}
		})
		require.NoError(t, r.Close())
	}
}

// judged returns the findings of what ranks have loaded.
func judged(t *testing.T, rings string) []model.Finding {
	t.Helper()
	watch, told := resume.NewWatch(resume.NewDefaultConfig()), 0
	read(t, rings, func(of pcommon.Resource, lr plog.LogRecord) {
		v, ok, err := resumemap.FromLog(of, lr)
		require.NoError(t, err)
		require.True(t, ok)
		watch.Observe(&v, time.Now())
		told++
	})
	require.Equal(t, 3, told)
	return watch.Tick(time.Now())
}

// Real processes that have loaded different steps are told of while they wait for their second.
func TestRanksResumeAtDifferentSteps(t *testing.T) {
	found := judged(t, job(t, [3]int{1200, 1100, 1200}, [3]int{1, 1, 1}))
	require.Len(t, found, 1)
	ev, ok := evidence.As[evidence.Resume](found[0].Evidence)
	require.True(t, ok)
	assert.Equal(t, []any{"job-7", model.ClassMixed, 3, 3, []int64{1}}, []any{found[0].JobID, found[0].Class, ev.Ranks, ev.Of, found[0].Ranks})
	require.Len(t, ev.Fields, 3)
	assert.Equal(t, []any{"step", "optimizer_step", "data_cursor"}, []any{ev.Fields[0].Name, ev.Fields[1].Name, ev.Fields[2].Name})
	assert.Equal(t, evidence.ValueHeld{Value: "1200", Ranks: []int64{0, 2}, Count: 2}, ev.Fields[0].Held[0])
	assert.Equal(t, evidence.ValueHeld{Value: "sample 70400", Ranks: []int64{1}, Count: 1}, ev.Fields[2].Held[1])
}

func TestRanksOfOneReplicaWithDifferentGenerators(t *testing.T) {
	found := judged(t, job(t, [3]int{1200, 1200, 1200}, [3]int{1, 1, 2}))
	require.Len(t, found, 1)
	ev, ok := evidence.As[evidence.Resume](found[0].Evidence)
	require.True(t, ok)
	require.Len(t, ev.Fields, 1)
	assert.Equal(t, []any{"rng_digest", "0", []int64{2}}, []any{ev.Fields[0].Name, ev.Fields[0].Replica, found[0].Ranks})
}

func TestRanksThatResumeAlike(t *testing.T) {
	assert.Empty(t, judged(t, job(t, [3]int{1200, 1200, 1200}, [3]int{1, 1, 1})))
}

// A bit that was flipped in one of three replicas is found when the turn of its slice comes, and the
// replica is named. Of 5,050 parameters in slices of 1,000 it is in the fifth.
func TestAFlippedBitIsFound(t *testing.T) {
	if err := exec.Command(interpreter(t), "-c", "import torch").Run(); err != nil {
		t.Skip("PyTorch is not installed")
	}
	watch := replica.NewWatch(replica.NewDefaultConfig())
	told := map[int64][]*model.Fingerprint{} // by step: what ranks tell of one comes within minutes
	read(t, jobOf(t, flipped, [3]int{0, 1, 0}, [3]int{}), func(of pcommon.Resource, lr plog.LogRecord) {
		v, ok, err := resumemap.FingerprintFromLog(of, lr)
		require.NoError(t, err)
		require.True(t, ok)
		told[v.Step] = append(told[v.Step], &v)
	})
	require.Len(t, told, 13)
	for step := int64(100); step <= 1300; step += 100 {
		require.Len(t, told[step], 3)
		for _, v := range told[step] {
			watch.Observe(v, time.Now())
		}
		found := watch.Tick(time.Now())
		if step != 400 && step != 1000 {
			assert.Empty(t, found, "step %d", step)
			continue
		}
		require.Len(t, found, 1)
		ev, ok := evidence.As[evidence.Replica](found[0].Evidence)
		require.True(t, ok)
		assert.Equal(t, []any{"job-7", "dp", step, int64(4000), int64(5050), []int64{1}}, []any{found[0].JobID, ev.Group, ev.Step, ev.Start, ev.Total, found[0].Ranks})
	}
}
