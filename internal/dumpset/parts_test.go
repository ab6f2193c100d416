// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
	"github.com/lockstep-otel/lockstep/internal/testdata"
)

// Whatever dumps of a hang there are, with the size of the job and without it: nobody is named
// or the only candidate who is not at fault, no operation is held to be joined by all that is
// not, and never is it said that nothing hangs.
func TestPartsOfRecordedHangs(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(testdata.Root(t), "testdata", "hangs", "*", "truth.json"))
	require.NoError(t, err)
	hangs := 0
	for _, path := range dirs {
		var of truth
		readJSON(t, path, &of)
		if of.Verdict != desync.Hang {
			continue
		}
		hangs++
		name := filepath.Base(filepath.Dir(path))
		t.Run(name, func(t *testing.T) {
			all := asWritten(t, filepath.Dir(path))
			for set := 1; set < 1<<len(all); set++ {
				var part []string
				for i, p := range all {
					if set>>i&1 == 1 {
						part = append(part, p)
					}
				}
				for _, world := range []int64{0, of.World} {
					checkPart(t, &of, part, world)
				}
			}
		})
	}
	assert.Equal(t, 8, hangs, "recorded hangs")
}

func checkPart(t *testing.T, of *truth, part []string, world int64) {
	t.Helper()
	names := make([]string, len(part))
	for i, p := range part {
		names[i] = filepath.Base(p)
	}
	what := fmt.Sprintf("%v, world %d", names, world)
	r := Read(t.Context(), part, Options{WorldSize: world})
	require.Len(t, r.Hangs, 1, what)
	rep := r.Hangs[0].Report
	assert.NotEqual(t, desync.Healthy, rep.Verdict, what)
	for i := range rep.Roots {
		f := &rep.Roots[i].Finding
		for _, rank := range f.Ranks {
			assert.Contains(t, of.Ranks, rank, "%s: named %s", what, f.Class)
		}
		if f.Class == model.ClassStalledOp || f.Class == model.ClassDumpMissing {
			assert.True(t, f.Class == model.ClassDumpMissing && slices.Equal(f.Candidates, of.Ranks), "%s: %s %v, %v", what, f.Class, f.Candidates, f.Op)
		}
	}
	if len(rep.Roots) == 0 {
		assert.NotEmpty(t, rep.MayRun, what)
		return
	}
	assert.True(t, amongThem(of, rep), "%s: %s", what, rep.Roots[0].Finding.Evidence)
}

// amongThem reports whether somebody at fault is named or a candidate, or it is said that
// somebody else may be.
func amongThem(of *truth, rep *desync.Report) bool {
	for i := range rep.Roots {
		f := &rep.Roots[i].Finding
		if strings.Contains(evidence.Encode(f.Evidence), "somebody else") || slices.ContainsFunc(slices.Concat(f.Ranks, f.Candidates), func(r int64) bool { return slices.Contains(of.Ranks, r) }) {
			return true
		}
	}
	return false
}
