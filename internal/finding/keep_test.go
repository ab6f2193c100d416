// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"encoding/json"
	"math"
	"math/rand" //nolint:depguard // testing/quick takes its generator
	"reflect"
	"strings"
	"testing"
	"testing/quick"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

func TestSnapshot_Restored_EachOpenUnderItsID(t *testing.T) {
	b := newBook(8)
	for n := range 3 {
		b.Found(place(n), int64(n), found("mixed"), at(0))
	}
	b.Found(place(1), 1, found("partial"), at(1))
	b.Close(b.At(place(0)), 7)
	before := b.Standing(at(9))
	data, err := b.Snapshot()
	require.NoError(t, err)

	again := newBook(8)
	require.NoError(t, again.Restore(data, at(2)))
	assert.Equal(t, before, again.Standing(at(9)))
	assert.Equal(t, []string{"mixed 2 closed"}, heads(again.Take()), "it may not have been sent")
	same, err := b.Snapshot()
	require.NoError(t, err)
	assert.Equal(t, string(data), string(same), "a snapshot changes nothing")
	b.End(at(700), func(*Episode[int]) bool { return false })
	b.Take()
	data, err = b.Snapshot()
	require.NoError(t, err)
	again = newBook(8)
	require.NoError(t, again.Restore(data, at(2)))
	assert.Empty(t, again.Take(), "a restart changes no finding")
	assert.True(t, again.At(place(1)).Restored)
	again.Found(place(1), 9, found("partial"), at(3))
	assert.False(t, again.At(place(1)).Restored)
	assert.Empty(t, again.Take(), "nothing is new")
	again.Found(place(0), 0, found("mixed"), at(3))
	assert.Equal(t, []string{"mixed 3 updated"}, heads(again.Take()), "what was closed before is remembered")
	twice, err := again.Snapshot()
	require.NoError(t, err)
	assert.NotEqual(t, data, twice)
}

func TestSnapshot_EveryFieldOfAFinding_Survives(t *testing.T) {
	rnd := rand.New(rand.NewSource(1)) //nolint:gosec // a test
	for range 50 {
		var f model.Finding
		v := reflect.ValueOf(&f).Elem()
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "Evidence" {
				f.Evidence = evidence.FromText(texts[rnd.Intn(len(texts))])
				continue
			}
			any, ok := quick.Value(v.Field(i).Type(), rnd)
			require.True(t, ok, v.Type().Field(i).Name)
			v.Field(i).Set(any)
			if o, isFloat := v.Field(i).Interface().(model.Optional[float64]); isFloat && !o.OK {
				v.Field(i).SetZero()
			}
			if o, isInt := v.Field(i).Interface().(model.Optional[int64]); isInt && !o.OK {
				v.Field(i).SetZero()
			}
			if v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0 {
				v.Field(i).SetZero()
			}
			if v.Field(i).Kind() == reflect.String {
				v.Field(i).SetString(texts[rnd.Intn(len(texts))])
			}
		}
		k := keep(&f)
		assert.Equal(t, f, k.finding())
	}
}

var texts = []string{"", "a", "ü\n\"", "rank 3 of 8"}

func TestSnapshot_NumbersThatJSONCannotHold_CostOnlyThemselves(t *testing.T) {
	b := newBook(8)
	f := found("mixed")
	f.CostSeconds, f.CostShare, f.Confidence = model.Some(math.NaN()), model.Some(0.5), math.Inf(1)
	b.Found(here, 1, f, at(0))
	data, err := b.Snapshot()
	require.NoError(t, err)
	again := newBook(8)
	require.NoError(t, again.Restore(data, at(1)))
	got := again.At(here).Finding
	assert.Equal(t, []any{false, model.Some(0.5), 0.0}, []any{got.CostSeconds.OK, got.CostShare, got.Confidence})
}

func TestRestore_LessRoomThanBefore_KnowsTheRestAgain(t *testing.T) {
	b := newBook(3)
	for n := range 3 {
		b.Found(place(n), 1, found("mixed"), at(0))
	}
	data, err := b.Snapshot()
	require.NoError(t, err)
	again := newBook(2)
	require.NoError(t, again.Restore(data, at(1)))
	assert.Equal(t, 2, again.Len())
	again.Close(again.At(place(0)), 5)
	again.Take()
	again.Found(place(2), 1, found("mixed"), at(2))
	assert.Equal(t, []string{"mixed 2 updated"}, heads(again.Take()))
}

func TestRestore_Unsound_TakesNothing(t *testing.T) {
	for name, data := range map[string]string{
		"no JSON":      `{`,
		"no version":   `{}`,
		"newer":        `{"version":2}`,
		"no id":        `{"version":1,"open":[{"place":{"name":"x"},"finding":{"kind":"k","revision":1,"status":"open"}}]}`,
		"no revision":  `{"version":1,"open":[{"place":{"name":"x"},"finding":{"id":"i","kind":"k","status":"open"}}]}`,
		"closed":       `{"version":1,"open":[{"place":{"name":"x"},"finding":{"id":"i","kind":"k","revision":1,"status":"closed"}}]}`,
		"not closed":   `{"version":1,"closed":[{"place":{"name":"x"},"finding":{"id":"i","kind":"k","revision":1,"status":"open"}}]}`,
		"ended no id":  `{"version":1,"ended":[{"revision":1}]}`,
		"ended no rev": `{"version":1,"ended":[{"id":"i"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(8)
			require.ErrorContains(t, b.Restore([]byte(data), at(0)), "read findings: ")
			assert.Zero(t, b.Len())
			assert.Zero(t, b.ended.known.Len())
		})
	}
}

// A finding that was closed and is open again is restored as open alone.
func TestSnapshot_ClosedAndOpenAgain_IsOpenOnce(t *testing.T) {
	for _, whole := range []bool{false, true} {
		b := New[int](Config{MaxOpen: 8, KeepWhole: whole})
		b.Found(here, 1, found("mixed"), at(0))
		b.Close(b.At(here), 7)
		b.Found(here, 1, found("mixed"), at(1))
		data, err := b.Snapshot()
		require.NoError(t, err)
		again := New[int](Config{MaxOpen: 8, KeepWhole: whole})
		require.NoError(t, again.Restore(data, at(2)))
		assert.Empty(t, again.Take())
		assert.Equal(t, []int{1, 0}, []int{again.Len(), again.EndedLen()})
		again.Drop(again.At(here))
		again.Found(here, 1, found("mixed"), at(3))
		assert.Equal(t, []string{"mixed 4 updated"}, heads(again.Take()))
	}
}

// What closes lately is bounded in bytes, and in the number of findings.
func TestClosed_Many_AreBounded(t *testing.T) {
	b := New[int](Config{MaxOpen: 8})
	long := found("mixed")
	long.Stack = strings.Repeat("x", 10_000)
	for n := range 2000 {
		b.Found(place(n), 1, long, at(n/100))
		b.Close(b.At(place(n)), 1)
	}
	bytes := 0
	var last Place
	for _, e := range b.fresh.All() {
		bytes += e.Finding.Bytes()
		last = e.Place
	}
	assert.LessOrEqual(t, bytes, maxFreshBytes)
	assert.Equal(t, place(1999), last, "the latest are known")
}

func FuzzRestore(f *testing.F) {
	b := New[int](Config{MaxOpen: 8, KeepWhole: true})
	b.Found(here, 1, found("mixed"), at(0))
	b.Close(b.At(here), 7)
	b.Found(place(4), 1, found("partial"), at(0))
	data, err := b.Snapshot()
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		newBook := func(n int) *Book[int] { return New[int](Config{MaxOpen: n, KeepWhole: len(data)%2 == 0}) }
		if all, err := Decode(data); err == nil {
			_, err = Encode(all)
			assert.NoError(t, err)
		}
		b := newBook(4)
		if b.Restore(data, at(0)) != nil {
			return
		}
		open := b.Len()
		assert.LessOrEqual(t, open, 4)
		b.Take()
		first, err := b.Snapshot()
		require.NoError(t, err)
		again := newBook(4)
		require.NoError(t, again.Restore(first, at(1)))
		second, err := again.Snapshot()
		require.NoError(t, err)
		assert.Equal(t, string(first), string(second))
		b.End(at(2), func(*Episode[int]) bool { return true })
		assert.Equal(t, int64(open), b.Stats().Closed)
		assert.Zero(t, b.Len())
	})
}

// Other components number their revisions as they like, and may leave out what a finding is about.
func TestSnapshot_ReceivedWithoutRevisionOrKind_IsRestored(t *testing.T) {
	b := newBook(8)
	for n, f := range []*model.Finding{{ID: "first"}, {ID: "below", Revision: -3}, {ID: "ended", Status: model.StatusClosed}} {
		e, receipt := b.Receive(place(n), f, at(0))
		require.Equal(t, First, receipt)
		assert.Equal(t, int64(1), e.Finding.Revision, f.ID)
	}
	data, err := b.Snapshot()
	require.NoError(t, err)
	again := newBook(8)
	require.NoError(t, again.Restore(data, at(1)))
	assert.Equal(t, 2, again.Len())
	_, receipt := again.Receive(place(0), &model.Finding{ID: "first"}, at(2))
	assert.Equal(t, Repeated, receipt)
	e, receipt := again.Receive(place(1), &model.Finding{ID: "below", Revision: 1}, at(2))
	assert.Equal(t, []any{Newer, int64(2)}, []any{receipt, e.Finding.Revision})
}

// A foreign finding may have the highest revision that there is.
func TestSnapshot_HighestRevision_IsRestored(t *testing.T) {
	b := New[int](Config{MaxOpen: 8, KeepWhole: true})
	f := found("mixed")
	f.ID, f.Revision, f.Status = "a", math.MaxInt64, model.StatusOpen
	p := Place{Job: "j", Name: "a"}
	e, _ := b.Receive(p, f, at(0))
	b.Amend(e, "incident")
	b.Close(e, 9)
	data, err := b.Snapshot()
	require.NoError(t, err)
	again := New[int](Config{MaxOpen: 8, KeepWhole: true})
	require.NoError(t, again.Restore(data, at(1)))
	assert.Equal(t, 1, again.EndedLen())
}

func TestSnapshot_TooLarge_KeepsThoseFoundLast(t *testing.T) {
	b := newBook(8)
	for n := range 8 {
		b.Found(place(n), int64(n), found(strings.Repeat("x", 1000)), at(0))
	}
	b.Close(b.At(place(7)), 7)
	b.Confirm(b.At(place(0)), at(1))
	whole, err := b.Snapshot()
	require.NoError(t, err)
	var k kept
	require.NoError(t, json.Unmarshal(whole, &k))

	k2 := k
	part, err := k2.encode(len(whole) - 100)
	require.ErrorContains(t, err, "7 of 7 open findings and 0 of 1 ended ones")
	assert.LessOrEqual(t, len(part), len(whole)-100)

	k2 = k
	part, err = k2.encode(3000)
	require.ErrorContains(t, err, "got more than 3000 bytes: 2 of 7 open findings")
	again := newBook(8)
	require.NoError(t, again.Restore(part, at(1)))
	open := again.Episodes()
	require.Len(t, open, 2)
	assert.Equal(t, []Place{place(6), place(0)}, []Place{open[0].Place, open[1].Place})

	k2 = k
	none, err := k2.encode(10)
	require.ErrorContains(t, err, "0 of 7 open findings")
	assert.NoError(t, newBook(8).Restore(none, at(1)), "even so it can be read")
}
