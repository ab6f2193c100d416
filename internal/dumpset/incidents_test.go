// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// mixed is a job of eight of which the first half of the dumps are of an incident at 0, the
// others of one that many seconds later.
func mixed(later int64) []*frwrite.Dump {
	return append(world(8, 0)[:4], world(8, later)[4:]...)
}

// Timeouts are ten minutes: who waited at 10 s had been given up at 11 m 10 s, with a minute
// to write, and the others enqueued something at 18 m.
func TestTwoIncidentsAreToldApart(t *testing.T) {
	r := Read(t.Context(), write(t, t.TempDir(), "rank_", mixed(18*60)), Options{})
	require.Len(t, r.Hangs, 2)
	assert.Empty(t, r.Problems)
	slices.SortFunc(r.Hangs, func(a, b Hang) int { return int(a.Began - b.Began) })
	// The newest operation of rank 2 is the ninth, of ranks 4 to 7 the tenth.
	assert.Equal(t, int64(1758580155_000_000_000+9e9+2), r.Hangs[0].Began)
	assert.Equal(t, int64(1758580155_000_000_000+(18*60+10)*1e9+4), r.Hangs[1].Began)
	for i, reason := range []model.AbsenceReason{model.AbsentMissing, model.AbsentStale} {
		h := &r.Hangs[i]
		assert.Equal(t, 2, h.Incidents)
		assert.Equal(t, []int{4, 4}, []int{h.Files, h.Ranks})
		require.Len(t, h.Absent, 4)
		assert.Equal(t, reason, h.Absent[0].Reason)
		assert.Contains(t, h.Absent[0].Detail, []string{"of a later incident", "of an earlier incident"}[i])
		assert.Empty(t, h.Times)
	}
	assert.NotEqual(t, r.Hangs[0].Job.Incarnation, r.Hangs[1].Job.Incarnation, "their findings are not one")
	for _, root := range r.Hangs[1].Roots {
		assert.Empty(t, root.Finding.Ranks, "nobody is accused by what the others did 18 minutes before")
	}
}

// Nothing in the dumps says that one of five minutes before is of another incident: who stands
// still is that long behind those that wait for it, too. It is said.
func TestDumpsThatMayBeOfTwoIncidents(t *testing.T) {
	r := Read(t.Context(), write(t, t.TempDir(), "rank_", mixed(5*60)), Options{})
	require.Len(t, r.Hangs, 1)
	assert.Equal(t, "The newest operation of ranks 0-3 is 5m0s before those of the others; that their dumps are of the same incident is not certain.", r.Hangs[0].Times)

	dumps := world(8, 300)
	dumps[2] = world(8, 0)[2] // it came to nine, and stood for five minutes
	r = Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
	require.Len(t, r.Hangs, 1)
	namesRank2(t, &r.Hangs[0])
	assert.Equal(t, "The newest operation of rank 2 is 5m1s before those of the others; that its dump is of the same incident is not certain.", r.Hangs[0].Times)

	r = Read(t.Context(), write(t, t.TempDir(), "rank_", world(8, 0)), Options{})
	assert.Empty(t, r.Hangs[0].Times)
}

// Where files keep their times, a dump is older than the change of its file.
func TestTimesOfFilesTellIncidentsApart(t *testing.T) {
	paths := write(t, t.TempDir(), "rank_", mixed(5*60))
	for i, p := range paths {
		at := time.Unix(1758580155+20, 0)
		if i >= 4 {
			at = at.Add(5 * time.Minute)
		}
		require.NoError(t, os.Chtimes(p, at, at))
	}
	require.Len(t, Read(t.Context(), paths, Options{}).Hangs, 2)

	t.Run("but not where they are of before its operations", func(t *testing.T) {
		for _, p := range paths {
			require.NoError(t, os.Chtimes(p, time.Unix(1000, 0), time.Unix(1000, 0)))
		}
		require.Len(t, Read(t.Context(), paths, Options{}).Hangs, 1)
	})
}

// A dump without operations has no time, but its file does: what was last changed before the others
// called what they wait in is of before. Where files have lost their times it is not known.
func TestADumpWithoutOperationsThatIsOlderThanTheHang(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(1758580155+s, 0) }
	for _, c := range []struct {
		name        string
		own, others time.Time
		stale       bool
	}{
		{"20 minutes older", at(-1200), at(610), true},
		{"of the same time", at(605), at(610), false},
		{"a minute is for clocks", at(-30), at(610), false},
		{"copied later", at(9000), at(610), false},
		{"all have lost their times", time.Unix(0, 0), time.Unix(0, 0), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dumps := world(8, 0)
			for _, d := range dumps {
				d.Stacks = false
			}
			dumps[6].Entries, dumps[6].Status = nil, []frwrite.Status{{PGID: 0, Enqueued: 8, Started: -1, Completed: 8}}
			paths := write(t, t.TempDir(), "rank_", dumps)
			for r, p := range paths {
				of := c.others
				if r == 6 {
					of = c.own
				}
				require.NoError(t, os.Chtimes(p, of, of))
			}
			r := Read(t.Context(), paths, Options{})
			require.Len(t, r.Hangs, 1)
			assert.Equal(t, c.stale, slices.ContainsFunc(r.Hangs[0].Absent, func(a model.Absence) bool {
				return a.Rank == 6 && a.Reason == model.AbsentStale && strings.Contains(a.Detail, "last changed")
			}), r.Hangs[0].Absent)
			assert.Equal(t, c.stale, strings.Contains(problemsOf(r), "rank_6: find incident of dump: its file was last changed"), problemsOf(r))
		})
	}
	t.Run("of the earlier of two incidents", func(t *testing.T) {
		dumps := append(world(12, 0)[:6], world(12, 3600)[6:]...)
		dumps[4].Entries, dumps[4].Status = nil, []frwrite.Status{{PGID: 0, Enqueued: 8, Started: -1, Completed: 8}}
		paths := write(t, t.TempDir(), "rank_", dumps)
		for r, p := range paths {
			of := at(611)
			if r >= 6 {
				of = at(3600 + 611)
			}
			require.NoError(t, os.Chtimes(p, of, of))
		}
		r := Read(t.Context(), paths, Options{})
		require.Len(t, r.Hangs, 2)
		slices.SortFunc(r.Hangs, func(a, b Hang) int { return int(a.Began - b.Began) })
		assert.Equal(t, []int{6, 6}, []int{r.Hangs[0].Files, r.Hangs[1].Files})
		assert.Empty(t, r.Hangs[1].Times, "of each dump it is known of which incident it is")
		for i, want := range []string{"of a later incident", "of an earlier incident"} {
			require.Len(t, r.Hangs[i].Absent, 6)
			for k, a := range r.Hangs[i].Absent {
				assert.EqualValues(t, 6*(1-i)+k, a.Rank)
				assert.Contains(t, a.Detail, want)
			}
		}
	})
}

// Who goes on although an operation has run out is not given up at its timeout.
func TestTimeoutsThatAreNotKept(t *testing.T) {
	dumps := mixed(18 * 60)
	for _, d := range dumps[:4] {
		d.Entries[0].State, d.Entries[0].Completed, d.Entries[0].Retired = frwrite.Scheduled, 0, false
		d.Entries[0].TimeoutMS = 1000
	}
	r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
	require.Len(t, r.Hangs, 1)
	assert.Contains(t, r.Hangs[0].Times, "ranks 0-3 is 18m0s before")
}

// Of another time than the others is one clock, or a file that nobody has overwritten.
func TestOneDumpOfAnotherTime(t *testing.T) {
	dumps := world(8, 0)
	dumps[6] = world(8, 3600)[6]
	r := Read(t.Context(), write(t, t.TempDir(), "rank_", dumps), Options{})
	require.Len(t, r.Hangs, 1)
	assert.Equal(t, 1, r.Hangs[0].Incidents)
	assert.Contains(t, problemsOf(r), "rank_6: find incident of dump: got one of 1h0m0s after the others were written")
	assert.Equal(t, []model.Absence{{Rank: 6, Reason: model.AbsentStale, Detail: r.Hangs[0].Absent[0].Detail}}, r.Hangs[0].Absent)
	for _, root := range r.Hangs[0].Roots {
		assert.NotContains(t, root.Finding.Ranks, int64(6))
	}
}

// What hangs is told first, then what may, and of those alike the larger.
func TestTheWorstIsToldFirst(t *testing.T) {
	healthy := world(16, 0)
	for _, d := range healthy {
		d.Entries, d.Status = d.Entries[:9], []frwrite.Status{{PGID: 0, Enqueued: 9, Started: -1, Completed: 9}}
	}
	dir := t.TempDir()
	paths := write(t, filepath.Join(dir, "a"), "rank_", healthy)
	paths = append(paths, write(t, filepath.Join(dir, "b"), "rank_", world(4, 0))...)
	paths = append(paths, write(t, filepath.Join(dir, "c"), "rank_", world(8, 0))...)
	r := Read(t.Context(), paths, Options{})
	var got []string
	for i := range r.Hangs {
		got = append(got, r.Hangs[i].Job.Name)
	}
	assert.Equal(t, []string{"c", "b", "a"}, got)
	assert.Equal(t, desync.Healthy, r.Hangs[2].Verdict)
}
