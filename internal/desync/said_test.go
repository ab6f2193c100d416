// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/desync/statetest"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// conclude judges a text with the default limits.
func conclude(t *testing.T, text string, witnesses ...desync.Witness) *desync.Report {
	t.Helper()
	return judge(statetest.Read(t, text), desync.NewDefaultConfig(), 0, witnesses...)
}

func judge(c statetest.Case, cfg desync.Config, at int64, witnesses ...desync.Witness) *desync.Report {
	a := desync.New(cfg)
	a.SetJob(desync.Job{Name: "train", ID: "j1", Incarnation: "1", WorldSize: c.WorldSize})
	for i := range c.States {
		a.Add(&c.States[i])
	}
	for _, b := range c.Absent {
		a.AddAbsence(b)
	}
	for _, w := range witnesses {
		a.AddWitness(w)
	}
	return a.Conclude(at)
}

// said is what a report comes to, a line for each root:
//
//	not_scheduled 3: all_reduce 42 of W; 0-2 wait, 4 more through them
//	incomplete_evidence ?3,5: all_reduce 42 of W; 0-2 wait
func said(rep *desync.Report) (lines []string) {
	for i := range rep.Roots {
		f := &rep.Roots[i].Finding
		var s strings.Builder
		s.WriteString(f.Class)
		if len(f.Ranks) > 0 {
			s.WriteString(" " + spans(f.Ranks))
		}
		if len(f.Candidates) > 0 {
			s.WriteString(" ?" + spans(f.Candidates))
		}
		fmt.Fprintf(&s, ": %s of %s", f.Op, f.CommName)
		if len(f.Waiting) > 0 {
			s.WriteString("; " + spans(f.Waiting) + " wait")
		}
		if n := f.Through.Or(0); n > 0 {
			fmt.Fprintf(&s, ", %d more through them", n)
		}
		lines = append(lines, s.String())
	}
	return lines
}

// decided is what a report says, without what is open beside what is decided: missing dumps
// are named there, after all that is decided, and nobody in them who is at fault.
func decided(t *testing.T, rep *desync.Report) (lines []string) {
	t.Helper()
	open := false
	for i, line := range said(rep) {
		f := &rep.Roots[i].Finding
		if rep.Verdict == desync.Hang && (f.Class == model.ClassIncompleteEvidence || f.Class == model.ClassDumpMissing) {
			open = true
			for _, id := range f.Candidates {
				assert.NotContains(t, accused(rep), id, line)
			}
			continue
		}
		assert.False(t, open, "what is decided comes first: %v", said(rep))
		lines = append(lines, line)
	}
	return lines
}

// spans writes ranks as 0-2,7.
func spans(ids []int64) string {
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		part := strconv.FormatInt(ids[i], 10)
		if j > i {
			part += "-" + strconv.FormatInt(ids[j], 10)
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// accused are all ranks that a report says are at fault.
func accused(rep *desync.Report) (ids []int64) {
	for i := range rep.Roots {
		ids = append(ids, rep.Roots[i].Finding.Ranks...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// named are all ranks that a report says are at fault, or can be.
func named(rep *desync.Report) []int64 {
	ids := accused(rep)
	for i := range rep.Roots {
		ids = append(ids, rep.Roots[i].Finding.Candidates...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// told is a case: what is known, and what must be said of it.
type told struct {
	name    string
	text    string
	verdict desync.Verdict
	want    []string
}

func check(t *testing.T, cases []told) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rep := conclude(t, c.text)
			assert.Equal(t, c.want, decided(t, rep))
			assert.Equal(t, c.verdict, rep.Verdict)
			for i := range rep.Roots {
				f := &rep.Roots[i].Finding
				assert.NotEmpty(t, f.ID)
				assert.NotEmpty(t, f.Action)
				assert.Less(t, f.Confidence, 1.0)
				if f.Class != model.ClassIncompleteEvidence {
					assert.Greater(t, f.Confidence, 0.0)
				}
				assert.Equal(t, f.Rank.OK, len(f.Ranks) == 1)
			}
			unmoved(t, c.text, rep)
			lessKnown(t, c.text, rep)
		})
	}
}

// difference is where two reports first differ; empty where they do not.
func difference(t *testing.T, want, got *desync.Report) string {
	t.Helper()
	var lines [2][]string
	for i, rep := range []*desync.Report{want, got} {
		b, err := json.MarshalIndent(rep, "", " ")
		require.NoError(t, err)
		lines[i] = strings.Split(string(b), "\n")
	}
	for i := range min(len(lines[0]), len(lines[1])) {
		if lines[0][i] != lines[1][i] {
			return fmt.Sprintf("line %d, after %s: %s; %s", i, strings.Join(lines[0][max(0, i-3):i], " "), lines[0][i], lines[1][i])
		}
	}
	if len(lines[0]) != len(lines[1]) {
		return "one is longer"
	}
	return ""
}

// unmoved checks that the order in which states come changes nothing.
func unmoved(t *testing.T, text string, want *desync.Report) {
	t.Helper()
	c := statetest.Read(t, text)
	rng := rand.New(rand.NewPCG(11, uint64(len(text))))
	for range 8 {
		rng.Shuffle(len(c.States), func(i, j int) { c.States[i], c.States[j] = c.States[j], c.States[i] })
		rng.Shuffle(len(c.Absent), func(i, j int) { c.Absent[i], c.Absent[j] = c.Absent[j], c.Absent[i] })
		got := judge(c, desync.NewDefaultConfig(), 0)
		require.Equal(t, said(want), said(got), "the order of input changes what is said")
		require.Empty(t, difference(t, want, got), "the order of input changes the report")
	}
}
