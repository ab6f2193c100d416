// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

var (
	start = time.Unix(1_700_000_000, 0)
	here  = Place{Job: "j", Incarnation: "j1", Name: "rank 3"}
)

func newBook(maxOpen int) *Book[int] {
	return New[int](Config{MaxOpen: maxOpen, Same: func(a, b *model.Finding) bool { return a.Class == b.Class }})
}

func found(class string) *model.Finding {
	return &model.Finding{Kind: model.FindingEpoch, Class: class, JobID: "j", Incarnation: "j1", Start: 5, Time: 9}
}

func at(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }

func place(n int) Place { return Place{Job: "j", Incarnation: "j1", Name: fmt.Sprint("rank ", n)} }

// heads are the revisions and states of findings.
func heads(all []model.Finding) (list []string) {
	for i := range all {
		list = append(list, fmt.Sprintf("%s %d %s", all[i].Class, all[i].Revision, all[i].Status))
	}
	return list
}

func TestBook_FoundAgain_RevisedOnlyWhereItDiffers(t *testing.T) {
	b := newBook(8)
	b.Found(here, 100, found("mixed"), at(0))
	b.Found(here, 200, found("mixed"), at(1))
	b.Found(here, 300, found("partial"), at(2))
	out := b.Take()
	assert.Equal(t, []string{"mixed 1 open", "partial 2 updated"}, heads(out))
	assert.Equal(t, here.ID(model.FindingEpoch, 100), out[0].ID, "the first observation names it")
	assert.Equal(t, out[0].ID, out[1].ID)
	assert.Equal(t, at(2), b.At(here).Confirmed)
	assert.Empty(t, b.Take())
}

func TestBook_Ended_ClosedOnce(t *testing.T) {
	b := newBook(8)
	b.Found(here, 1, found("mixed"), at(0))
	b.End(at(1), func(*Episode[int]) bool { return false })
	assert.Equal(t, 1, b.Len())
	b.End(at(2), func(*Episode[int]) bool { return true })
	b.End(at(3), func(*Episode[int]) bool { return true })
	out := b.Take()
	assert.Equal(t, []string{"mixed 1 open", "mixed 2 closed"}, heads(out))
	assert.Equal(t, at(2).UnixNano(), out[1].Time)
	assert.Empty(t, b.Standing(at(9)))
	assert.Zero(t, b.Bytes())
}

func TestBook_FoundAfterItsEnd_GoesOnUnderItsID(t *testing.T) {
	b := newBook(8)
	b.Found(here, 1, found("mixed"), at(0))
	b.Close(b.At(here), 10)
	b.Found(here, 1, found("mixed"), at(2))
	b.Drop(b.At(here))
	b.Found(here, 1, found("mixed"), at(3))
	b.Close(b.At(here), 11)
	b.Found(here, 2, found("mixed"), at(4))
	out := b.Take()
	assert.Equal(t, []string{"mixed 1 open", "mixed 2 closed", "mixed 3 updated", "mixed 4 updated", "mixed 5 closed", "mixed 1 open"}, heads(out))
	assert.Equal(t, out[0].ID, out[4].ID)
	assert.NotEqual(t, out[0].ID, out[5].ID, "it began with another observation")
	assert.Equal(t, Stats{Opened: 4, Reopened: 2, Closed: 2, Dropped: 1}, b.Stats())
}

func TestBook_NoRoom_CountedOncePerFinding(t *testing.T) {
	b := newBook(2)
	for look := range 5 {
		for n := range 4 {
			b.Found(place(n), 1, found("mixed"), at(look))
		}
		b.Take()
	}
	assert.Equal(t, int64(2), b.Stats().Withheld)
	b.End(at(6), func(e *Episode[int]) bool { return e.Place == place(0) })
	for n := range 3 {
		b.Found(place(n+1), 1, found("mixed"), at(7))
	}
	assert.Len(t, b.Take(), 2, "one closed, and one that found room")
	assert.Equal(t, int64(2), b.Stats().Withheld, "the last was counted before")
	for n := range 3 {
		b.Found(place(n+1), 1, found("mixed"), at(7+600))
	}
	assert.Equal(t, int64(3), b.Stats().Withheld, "found anew")
}

func TestBook_OneJob_LeavesRoomForOthers(t *testing.T) {
	b := New[int](Config{MaxOpen: 8, MaxOpenOfJob: 2})
	for n := range 4 {
		b.Found(place(n), 1, found("mixed"), at(0))
		b.Found(Place{Job: "k", Name: fmt.Sprint(n)}, 1, found("mixed"), at(0))
	}
	assert.Len(t, b.OfJob("j", "j1"), 2)
	assert.Len(t, b.OfJob("k", ""), 2)
	assert.Equal(t, int64(4), b.Stats().Withheld)
}

func TestBook_Bytes_Bound(t *testing.T) {
	one := found("mixed").Bytes()
	b := New[int](Config{MaxOpen: 8, MaxBytes: 3 * one})
	for n := range 4 {
		b.Found(place(n), 1, found("mixed"), at(0))
	}
	assert.LessOrEqual(t, b.Bytes(), 3*one)
	assert.Equal(t, int64(2), b.Stats().Withheld, "an id takes some bytes, too")
}

func TestBook_Refresh_NoRevision(t *testing.T) {
	b := newBook(8)
	e := b.Found(here, 1, found("mixed"), at(0))
	b.Take()
	more := found("mixed")
	more.Start, more.Host = 70, "h"
	b.Refresh(e, more)
	assert.Empty(t, b.Take())
	require.Len(t, b.Standing(at(9)), 1)
	f := b.Standing(at(9))[0]
	assert.Equal(t, []any{"h", int64(5), int64(1), model.StatusOpen}, []any{f.Host, f.Start, f.Revision, f.Status})
}

func TestBook_ManyEnded_ForgetsTheOldest(t *testing.T) {
	b := newBook(1)
	for n := range DefaultEnded + 2 {
		b.Found(place(n), 1, found("mixed"), at(n))
		b.Close(b.At(place(n)), 1)
	}
	b.Found(place(0), 1, found("mixed"), at(0))
	assert.Equal(t, int64(1), b.At(place(0)).Finding.Revision, "forgotten")
	b.Drop(b.At(place(0)))
	b.Found(place(DefaultEnded), 1, found("mixed"), at(0))
	assert.Equal(t, int64(3), b.At(place(DefaultEnded)).Finding.Revision, "remembered")
}

func TestPlace_ID_TwoJobs_Differ(t *testing.T) {
	for _, incarnation := range []string{"", "shared"} {
		a, b := Place{Job: "a", Incarnation: incarnation, Name: "x"}, Place{Job: "b", Incarnation: incarnation, Name: "x"}
		assert.NotEqual(t, a.ID("k", 1), b.ID("k", 1))
		assert.NotEqual(t, a.ID("k", 1), a.ID("k", 2))
	}
}
