// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// truth is what was done to a recorded job.
type truth struct {
	World   int64          `json:"world_size"`
	Verdict desync.Verdict `json:"verdict"`
	Class   string         `json:"class"`
	Ranks   []int64        `json:"ranks"`
}

// undecided are recorded hangs that their dumps do not decide, and why.
var undecided = map[string]string{
	"exit":   "who ended leaves no dump, and none says that it ended",
	"killed": "who was killed leaves no dump, and none says that it was",
	// Gloo ended rank 0 for it.
	"wrong_size": "two of four are seen to agree, and a dump is missing",
}

// stacked are the healthy jobs whose dumps have call stacks.
var stacked = map[string]bool{"healthy_busy": true, "healthy_uneven": true}

// Hangs of real PyTorch jobs on Gloo, in testdata/hangs: what was done is named, or is among
// the candidates where the dumps do not decide; nobody else is named.
func TestRecordedHangs(t *testing.T) {
	for _, name := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			var of truth
			dir := filepath.Join(testdata.Root(t), "testdata", "hangs", name)
			readJSON(t, filepath.Join(dir, "truth.json"), &of)
			r := Read(t.Context(), asWritten(t, dir), Options{WorldSize: of.World})
			require.Len(t, r.Hangs, 1)
			checkTruth(t, name, &of, r.Hangs[0].Report)
		})
	}
}

func checkTruth(t *testing.T, name string, of *truth, rep *desync.Report) {
	t.Helper()
	if of.Verdict == desync.Healthy {
		checkHealthy(t, name, rep)
		return
	}
	var named, candidates []int64
	for i := range rep.Roots {
		f := &rep.Roots[i].Finding
		named, candidates = append(named, f.Ranks...), append(candidates, f.Candidates...)
		if name == "send_unreceived" { // Gloo records no messages: seen is that its sender does not come
			assert.Equal(t, model.ClassNotScheduled, f.Class)
			assert.LessOrEqual(t, f.Confidence, 0.6)
		} else if len(f.Ranks) > 0 {
			assert.Equal(t, of.Class, f.Class)
		}
	}
	for _, r := range named {
		assert.Contains(t, of.Ranks, r, "named")
	}
	if why, ok := undecided[name]; ok {
		assert.Empty(t, named, why)
		for _, r := range of.Ranks {
			assert.Contains(t, candidates, r, why)
		}
		return
	}
	assert.NotEmpty(t, named)
}

// checkHealthy wants nobody named. Dumps with call stacks are written seconds after they were
// taken, so that nothing tells whether what is open in them stands still.
func checkHealthy(t *testing.T, name string, rep *desync.Report) {
	t.Helper()
	if bare := !stacked[name]; bare {
		assert.Equal(t, desync.Healthy, rep.Verdict)
		assert.Empty(t, rep.Roots)
		return
	}
	assert.NotEqual(t, desync.Hang, rep.Verdict)
	for i := range rep.Roots {
		f := &rep.Roots[i].Finding
		assert.Empty(t, f.Ranks, "named")
		assert.Equal(t, model.ClassIncompleteEvidence, f.Class)
		assert.Zero(t, f.Confidence)
		assert.Contains(t, evidence.Encode(f.Evidence), "the job may be running")
	}
}

// clones are the times that files have which a checkout or a copy made, by what was said when.
var clones = map[string]func(rank int) time.Time{
	"at one instant":            func(int) time.Time { return time.Now() },
	"each in another second":    func(rank int) time.Time { return time.Now().Add(time.Duration(rank) * time.Second) },
	"before the job":            func(int) time.Time { return time.Unix(1_000_000_000, 0) },
	"some before, others after": func(rank int) time.Time { return time.Now().AddDate(-20*(rank%2), 0, 0) },
}

// Whatever times a checkout gave the recordings: where a person says that the job hung, what was done
// is named, or is among three candidates at most, the likeliest first. Nobody who did nothing is
// named, with that word or without it, and of jobs that run nobody is a candidate.
func TestRecordedHangsOfAClone(t *testing.T) {
	for at, when := range clones {
		for _, name := range recorded(t) {
			dir := filepath.Join(testdata.Root(t), "testdata", "hangs", name)
			var of truth
			readJSON(t, filepath.Join(dir, "truth.json"), &of)
			paths := asWritten(t, dir)
			for i, p := range paths {
				require.NoError(t, os.Chtimes(p, when(i), when(i)))
			}
			for _, hung := range []bool{false, true} {
				r := Read(t.Context(), paths, Options{WorldSize: of.World, Hung: hung})
				require.Len(t, r.Hangs, 1)
				checkClone(t, fmt.Sprintf("%s, %s, said to hang: %v", name, at, hung), name, &of, r.Hangs[0].Report)
			}
		}
	}
}

func checkClone(t *testing.T, say, name string, of *truth, rep *desync.Report) {
	t.Helper()
	if of.Verdict == desync.Healthy {
		assert.Empty(t, rep.Roots, say)
		assert.Equal(t, desync.Undecided, rep.Verdict, say)
		assert.NotEmpty(t, rep.MayRun, say)
		return
	}
	require.Len(t, rep.Roots, 1, say)
	assert.Empty(t, rep.MayRun, say)
	f := &rep.Roots[0].Finding
	switch _, open := undecided[name]; {
	case open:
		assert.Empty(t, f.Ranks, say)
		assert.LessOrEqual(t, len(f.Candidates), 3, say)
		assert.Equal(t, of.Ranks, f.Candidates[:len(of.Ranks)], say)
	case name == "send_unreceived":
		assert.Equal(t, of.Ranks, f.Candidates, say)
		assert.Equal(t, of.Ranks[:1], f.Ranks, say)
	default:
		assert.Equal(t, of.Ranks, f.Ranks, say)
		assert.Equal(t, of.Class, f.Class, say)
	}
}

// recorded are the names of the recordings.
func recorded(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testdata.Root(t), "testdata", "hangs", "*", "truth.json"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, p := range paths {
		names = append(names, filepath.Base(filepath.Dir(p)))
	}
	return names
}

// With the times that they were written at and a person's word, no rank of a healthy job is named, and
// what the recordings of hangs show without it stays.
func TestRecordedHangsThatAPersonSaw(t *testing.T) {
	for _, name := range recorded(t) {
		dir := filepath.Join(testdata.Root(t), "testdata", "hangs", name)
		var of truth
		readJSON(t, filepath.Join(dir, "truth.json"), &of)
		r := Read(t.Context(), asWritten(t, dir), Options{WorldSize: of.World, Hung: true})
		require.Len(t, r.Hangs, 1)
		if rep := r.Hangs[0].Report; of.Verdict == desync.Healthy {
			assert.Empty(t, rep.Roots, name)
			assert.Equal(t, desync.Undecided, rep.Verdict, name)
			assert.NotEmpty(t, rep.MayRun, name)
		} else {
			assert.True(t, rep.Hung)
			checkTruth(t, name, &of, rep)
			assert.Empty(t, rep.MayRun, name)
		}
	}
}

// One dump of another run, a minute before or after, makes no job healthy that hangs.
func TestADumpOfAnotherRun(t *testing.T) {
	root := filepath.Join(testdata.Root(t), "testdata", "hangs")
	for _, of := range [][2]string{{"wrong_op", "opposite_order"}, {"exit", "killed"}, {"opposite_order", "exit"}, {"exit", "wrong_size"}} {
		for _, lost := range []bool{false, true} {
			var paths []string
			for i, job := range of {
				for _, p := range asWritten(t, filepath.Join(root, job)) {
					if (filepath.Base(p) == "rank_3") != (i == 1) {
						continue
					}
					if lost {
						at := time.Now().Add(time.Hour)
						require.NoError(t, os.Chtimes(p, at, at))
					}
					paths = append(paths, p)
				}
			}
			r := Read(t.Context(), paths, Options{WorldSize: 4, Job: "job"})
			for i := range r.Hangs {
				assert.NotEqual(t, desync.Healthy, r.Hangs[i].Verdict, "%v, times lost: %v", of, lost)
			}
		}
	}
}

// Healthy jobs are dumped in the midst of steps: something is open in each, or its dumps contradict
// one another. So their recordings test something.
func TestRecordedHealthIsInTheMidst(t *testing.T) {
	for _, name := range []string{"healthy", "healthy_json", "healthy_busy", "healthy_uneven", "healthy_uneven_bare"} {
		var of truth
		dir := filepath.Join(testdata.Root(t), "testdata", "hangs", name)
		readJSON(t, filepath.Join(dir, "truth.json"), &of)
		paths := asWritten(t, dir)
		for _, p := range paths {
			at := time.Now().Add(time.Hour) // as copies have
			require.NoError(t, os.Chtimes(p, at, at))
		}
		r := Read(t.Context(), paths, Options{WorldSize: of.World})
		require.Len(t, r.Hangs, 1)
		moved := strings.Contains(strings.Join(r.Hangs[0].Report.Problems, "\n"), "the job went on")
		open := slices.ContainsFunc(r.Hangs[0].Groups, func(g desync.Group) bool { return g.HasHead })
		assert.True(t, moved || open, name)
	}
}

// asWritten copies dumps with the times at which they were written, which no checkout keeps.
func asWritten(t *testing.T, dir string) (paths []string) {
	t.Helper()
	var seen struct {
		Written map[string]int64 `json:"written"`
	}
	readJSON(t, filepath.Join(dir, "seen.json"), &seen)
	to := filepath.Join(t.TempDir(), "job")
	require.NoError(t, os.Mkdir(to, 0o700))
	for rank, ns := range seen.Written {
		_, err := strconv.Atoi(rank)
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(dir, "dumps", "rank_"+rank))
		require.NoError(t, err)
		path := filepath.Join(to, "rank_"+rank)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		at := time.Unix(0, ns)
		require.NoError(t, os.Chtimes(path, at, at))
		paths = append(paths, path)
	}
	slices.Sort(paths)
	require.NotEmpty(t, paths)
	return paths
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, to), path)
}
