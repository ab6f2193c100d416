// SPDX-License-Identifier: Apache-2.0

package frwatch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func at(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }

func file(path string, size int64, changed float64) File {
	return File{Path: path, Size: size, Time: at(changed), Regular: true}
}

func names(due []Due) (out []string) {
	for _, d := range due {
		text := d.Path
		if d.Settled {
			text += " settled"
		}
		out = append(out, text)
	}
	return out
}

func TestFilesAreDueWhenTheyChangeAndWhenTheySettle(t *testing.T) {
	tr := Tracker{Settle: time.Second}
	look := func(now float64, files ...File) []string {
		due, _ := tr.Look(at(now), files)
		return names(due)
	}
	torn, whole := file("a", 10, 0), file("a", 20, 0.4)
	assert.Equal(t, []string{"a"}, look(0, torn), "it may be whole")
	assert.Empty(t, look(0.3, torn), "it was not")
	assert.Equal(t, []string{"a"}, look(0.5, whole))
	assert.Empty(t, look(1.2, whole))
	assert.True(t, tr.Unsettled("a"))
	assert.Equal(t, []string{"a settled"}, look(1.5, whole))
	tr.Done(&whole)
	assert.False(t, tr.Unsettled("a"))
	assert.Empty(t, look(9, whole), "each version once")
	next := file("a", 20, 8)
	assert.Equal(t, []string{"a"}, look(10, next), "written anew, as long as before")
	tr.Done(&next)
	assert.Empty(t, look(12, next))
	assert.Empty(t, look(13))
	assert.Equal(t, []string{"a"}, look(14, next), "gone and there again")
}

func TestEmptyFilesWaitUntilTheySettle(t *testing.T) {
	tr := Tracker{Settle: time.Second}
	empty := file("a", 0, 0)
	due, _ := tr.Look(at(0), []File{empty})
	assert.Empty(t, due)
	due, _ = tr.Look(at(1), []File{empty})
	assert.Equal(t, []string{"a settled"}, names(due))
}

func TestOldFilesAreLeftUntilTheyAreWritten(t *testing.T) {
	tr := Tracker{Settle: time.Second, MaxAge: 10 * time.Second}
	f := file("a", 10, -11)
	due, old := tr.Look(at(0), []File{f, file("b", 10, -9)})
	assert.Equal(t, []string{"b"}, names(due))
	assert.Equal(t, 1, old)
	_, old = tr.Look(at(1), []File{f})
	assert.Zero(t, old, "counted once")
	f.Time = at(1.5)
	due, _ = tr.Look(at(2), []File{f})
	assert.Equal(t, []string{"a"}, names(due))
}

func TestJobsOfFolders(t *testing.T) {
	j := Jobs{Window: time.Minute}
	of := func(path, prefix string, rank int64, changed float64) File {
		return File{Path: path, Prefix: prefix, Rank: rank, Time: at(changed)}
	}
	hosts := []File{of("/d/run-17/t_n1_0", "t_n1_", 0, 0), of("/d/run-17/t_n2_1", "t_n2_", 1, 0)}
	assert.Empty(t, j.Learn(hosts), "the host in the name")
	assert.Equal(t, "run-17", j.Of(&hosts[0]))

	left := []File{of("/d/run-18/t_n1_0", "t_n1_", 0, 0), of("/d/run-18/t_n2_0", "t_n2_", 0, 600)}
	assert.Empty(t, j.Learn(left), "one of them is left over")

	two := []File{of("/d/two/a_rank_0", "a_rank_", 0, 0), of("/d/two/b_rank_0", "b_rank_", 0, 1), of("/d/two/b_rank_1", "b_rank_", 1, 1)}
	assert.Equal(t, []string{"/d/two"}, j.Learn(two))
	assert.Empty(t, j.Learn(two), "told once")
	assert.Equal(t, []string{"two/a_rank", "two/b_rank", "two/b_rank"}, []string{j.Of(&two[0]), j.Of(&two[1]), j.Of(&two[2])})
	assert.Equal(t, "run-17", j.Of(&hosts[1]))

	named := Jobs{ID: "job-9", Window: time.Minute}
	assert.Empty(t, named.Learn(two))
	assert.Equal(t, "job-9", named.Of(&two[0]))
}
