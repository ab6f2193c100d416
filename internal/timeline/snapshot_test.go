// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// A restart in the middle: what was placed stays, bounds hold, time goes on and the
// timeline keeps its name.
func TestRestart(t *testing.T) {
	w := cluster(t, 30, 6)
	w.clocks[realtime(2)] = linear(epoch+40_000_000, 0)
	for range 20 {
		w.window()
	}
	w.tl.Alias("node-1", "h1")
	before := map[string]int64{}
	for id := range w.clocks {
		before[id] = w.contains(id, w.now).Time
	}
	name := w.place(raw(1), w.now).Timeline
	open := w.of(model.ClassSkew)
	require.NotEmpty(t, open)

	saved := snapshotOf(w.tl)
	w.tl = New(w.tl.opt)
	require.NoError(t, w.tl.Restore(saved))
	for id := range w.clocks {
		assert.Equal(t, before[id], w.place(id, w.now).Time)
	}
	id, _ := w.tl.Resolve("node-1")
	assert.Equal(t, realtime(1), id)
	w.now += 5 * windowN // nothing was observed meanwhile
	for id := range w.clocks {
		p := w.contains(id, w.now)
		assert.Greater(t, p.Time, before[id])
		before[id] = p.Time
	}
	for range 10 {
		w.window()
		for id := range w.clocks {
			p := w.contains(id, w.now)
			assert.Greater(t, p.Time, before[id])
			assert.Equal(t, name, p.Timeline)
			before[id] = p.Time
		}
	}
	found := w.of(model.ClassSkew)
	for _, f := range found {
		assert.Equal(t, open[0].ID, f.ID, "the episode goes on, and is not opened again")
	}
}

func TestSnapshotOfASnapshotIsTheSame(t *testing.T) {
	w := cluster(t, 31, 4)
	w.clocks[realtime(2)] = linear(epoch+40_000_000, 0)
	for range 5 {
		w.window()
	}
	saved := snapshotOf(w.tl)
	again := New(w.tl.opt)
	require.NoError(t, again.Restore(saved))
	assert.JSONEq(t, string(saved), string(snapshotOf(again)))
}

// Evidence is a text in a snapshot, as in those of earlier versions, and is as it was after a restart.
func TestSnapshot_OpenFinding_KeepsItsEvidence(t *testing.T) {
	w := cluster(t, 31, 4)
	w.clocks[realtime(2)] = linear(epoch+40_000_000, 0)
	for range 5 {
		w.window()
	}
	open := w.of(model.ClassSkew)
	require.NotEmpty(t, open)
	want := evidence.Encode(open[0].Evidence)
	require.Contains(t, want, `"offset_seconds":`)
	saved := snapshotOf(w.tl)
	var s struct {
		Findings struct {
			Open []struct{ Finding struct{ ID, Evidence string } }
		}
	}
	require.NoError(t, json.Unmarshal(saved, &s))
	require.Len(t, s.Findings.Open, 1)
	assert.Equal(t, open[0].ID, s.Findings.Open[0].Finding.ID)
	assert.Equal(t, want, s.Findings.Open[0].Finding.Evidence)

	again := New(w.tl.opt)
	require.NoError(t, again.Restore(saved))
	for _, e := range again.watch.book.Episodes() {
		assert.Equal(t, evidence.Text(want), e.Finding.Evidence)
	}
}

// What was told of before a restart is not news after it, and what comes then is.
func TestAKnownStepIsNotToldAfterARestart(t *testing.T) {
	w := cluster(t, 32, 4)
	for range 10 {
		w.window()
	}
	w.set(raw(1), w.now, 5*sec)
	for range 10 {
		w.window()
	}
	known := w.of(model.ClassStep)
	require.NotEmpty(t, known)
	w.restart()
	w.findings = nil
	for range 5 {
		w.window()
	}
	for _, f := range w.of(model.ClassStep) { // its end may not have been sent before
		last := known[len(known)-1]
		assert.Equal(t, []any{last.ID, last.Revision, model.StatusClosed}, []any{f.ID, f.Revision, f.Status})
	}
	w.findings = nil
	w.set(raw(2), w.now, 5*sec)
	for range 10 {
		w.window()
	}
	w.only(t, model.ClassStep, raw(2))
}

func TestOldClocksAreNotRestored(t *testing.T) {
	w := cluster(t, 32, 3)
	w.window()
	saved := snapshotOf(w.tl)
	w.now += int64(time.Hour)
	w.tl = New(w.tl.opt)
	require.NoError(t, w.tl.Restore(saved))
	assert.Empty(t, w.tl.State().Clocks)
	_, ok := w.tl.Resolve("h1")
	assert.False(t, ok)
}

// A state that was written by nobody keeps the order of readings all the same.
func TestRestoredLinesAreConnected(t *testing.T) {
	w := cluster(t, 34, 3)
	for range 5 {
		w.window()
	}
	var at int64
	saved := change(t, string(snapshotOf(w.tl)), func(s *snapshot) {
		for i := range s.Clocks {
			if c := &s.Clocks[i]; c.Clock == raw(2) {
				c.Knots[2].Offset -= 1e9
				at = c.Knots[2].At
			}
		}
	})
	w.tl = New(w.tl.opt)
	require.NoError(t, w.tl.Restore([]byte(saved)))
	a, _ := w.tl.Place(raw(2), at-1)
	b, _ := w.tl.Place(raw(2), at)
	assert.LessOrEqual(t, a.Time, b.Time)
}

// Spans are placed ahead of the last window, and bends begin where they stand. What
// is kept of such a line can be read.
func TestSnapshotOfLinesAhead(t *testing.T) {
	w := cluster(t, 34, 3)
	for k := range 40 {
		w.window()
		for id := range w.clocks {
			w.place(id, w.now+int64(k%10)*sec)
		}
		require.NoError(t, New(w.tl.opt).Restore(snapshotOf(w.tl)))
	}
}

func TestRestoreRefuses(t *testing.T) {
	w := cluster(t, 33, 3)
	for range 3 {
		w.window()
	}
	saved := string(snapshotOf(w.tl))
	for name, tt := range map[string]struct{ data, want string }{
		"no JSON":         {"x", "restore timeline: invalid character"},
		"version":         {strings.Replace(saved, `"version":2`, `"version":3`, 1), "got version 3; want 1 or 2"},
		"slope":           {replaceKnot(t, saved, func(k *savedKnot) { k.Slope = -2 }), "got -2; want at most"},
		"far":             {replaceKnot(t, saved, func(k *savedKnot) { k.Offset = 1<<63 - 1 }), "want order, and at most"},
		"twice":           {change(t, saved, func(s *snapshot) { s.Clocks = append(s.Clocks, s.Clocks[0]) }), "or the clock twice"},
		"no scale":        {change(t, saved, func(s *snapshot) { s.Scales = nil }), "got no timeline"},
		"bound":           {change(t, saved, func(s *snapshot) { *s.Clocks[1].Window.Bound = -1 }), "with bound -1 ns"},
		"no knots":        {change(t, saved, func(s *snapshot) { s.Clocks[1].Knots = nil }), "check knots: got 0; want 1 to 4"},
		"settled":         {change(t, saved, func(s *snapshot) { s.Clocks[1].Settled += 1e16 }), "check settled"},
		"asked":           {change(t, saved, func(s *snapshot) { s.Scales[0].Asked = 1<<63 - 1 }), "got asked 9223372036854775807"},
		"epoch":           {change(t, saved, func(s *snapshot) { s.Scales[0].Epoch = -1 }), "epoch -1"},
		"set by":          {change(t, saved, func(s *snapshot) { s.Scales[0].SetBy = -1 }), "set by -1"},
		"name":            {change(t, saved, func(s *snapshot) { s.Scales[0].Name = "x" }), `want a name that begins with "timeline:"`},
		"long name":       {change(t, saved, func(s *snapshot) { s.Aliases = map[string]string{strings.Repeat("n", 257): "h1"} }), "got a name of 257 bytes"},
		"findings":        {change(t, saved, func(s *snapshot) { s.Findings = []byte(`{"version":1,"open":[{}]}`) }), "read findings: check open finding 0"},
		"no findings":     {change(t, saved, func(s *snapshot) { s.Findings = nil }), "read findings: unexpected end"},
		"reference twice": {change(t, saved, func(s *snapshot) { s.Scales = append(s.Scales, s.Scales[0]) }), "check reference"},
	} {
		tl := New(w.tl.opt)
		require.ErrorContains(t, tl.Restore([]byte(tt.data)), tt.want, name)
		assert.Empty(t, tl.State().Clocks)
	}
	small := New(Options{MaxClocks: 2, Now: w.tl.opt.Now})
	require.ErrorContains(t, small.Restore([]byte(saved)), "got 6 clocks on 1 timelines and 0 names; want at most 2")
	many := change(t, saved, func(s *snapshot) { s.Counts = make([]savedCount, 9) })
	require.ErrorContains(t, small.Restore([]byte(many)), "got 9 counts; want at most 8")
}

// A name that nobody could be shown, of a state of before, is left out alone.
func TestAliasesThatAreLeftOut(t *testing.T) {
	w := cluster(t, 41, 3)
	w.window()
	w.tl.Alias("node-1", "h1")
	saved := change(t, string(snapshotOf(w.tl)), func(s *snapshot) {
		s.Aliases["a\nb"], s.Aliases["node-2"] = "h2", ""
	})
	tl := New(w.tl.opt)
	require.NoError(t, tl.Restore([]byte(saved)))
	id, ok := tl.Resolve("node-1")
	assert.True(t, ok)
	assert.Equal(t, realtime(1), id)
	for _, name := range []string{"a\nb", "node-2"} {
		_, ok := tl.Resolve(name)
		assert.False(t, ok, "%q", name)
	}
}

func change(t *testing.T, saved string, by func(*snapshot)) string {
	t.Helper()
	var s snapshot
	require.NoError(t, json.Unmarshal([]byte(saved), &s))
	by(&s)
	data, err := json.Marshal(s)
	require.NoError(t, err)
	return string(data)
}

func replaceKnot(t *testing.T, saved string, by func(*savedKnot)) string {
	t.Helper()
	return change(t, saved, func(s *snapshot) { by(&s.Clocks[1].Knots[0]) })
}

// Whatever a storage returns, restoring fails with an error or leaves a timeline that
// places monotonously, saves itself, and goes on.
func FuzzRestore(f *testing.F) {
	tl := New(Options{Now: func() time.Time { return time.Unix(0, epoch) }})
	for i := range 4 {
		if err := tl.AddEdge(model.ClockEdge{
			Src: raw(i), Dst: realtime(i), At: 1000, Span: 100, Lower: epoch - 1100, Upper: epoch - 900, Offset: epoch - 1000, Sigma: 9,
			Samples: 1, Source: model.EdgePair, Stamps: model.StampUser,
		}); err != nil {
			f.Fatal(err)
		}
	}
	tl.Advance(time.Unix(0, epoch))
	f.Add(snapshotOf(tl))
	f.Add([]byte(`{"version":1,"scales":[{"reference":"a","name":"a","foreign":true}],"clocks":[{"clock":"c","scale":"a","knots":[{}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tl := New(Options{Now: func() time.Time { return time.Unix(0, epoch) }})
		if tl.Restore(data) != nil {
			return
		}
		for _, c := range tl.State().Clocks {
			at := c.Model.Until
			for d := int64(0); d < 10; d++ {
				p, ok := tl.Place(c.Model.Clock, at+d)
				next, okNext := tl.Place(c.Model.Clock, at+d+1)
				if ok && okNext && p.Time > next.Time {
					t.Fatalf("%s: %d then %d", c.Model.Clock, p.Time, next.Time)
				}
			}
		}
		tl.Advance(time.Unix(0, epoch+1))
		if err := New(tl.opt).Restore(snapshotOf(tl)); err != nil {
			t.Fatalf("restore own snapshot: %v", err)
		}
	})
}

func snapshotOf(tl *Timeline) []byte {
	data, _ := tl.Snapshot()
	return data
}
