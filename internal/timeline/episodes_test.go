// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// timed is an edge and when it comes.
type timed struct {
	at   int64
	edge model.ClockEdge
}

// faultyFrom is when something goes wrong in a recording.
const faultyFrom = 24 * sec

// faulty makes one host wrong from faultyFrom on; untrusted is in what edges say of it.
func (w *world) faulty(class string) {
	switch class {
	case model.ClassSkew:
		old := w.clocks[realtime(2)]
		w.clocks[realtime(2)] = func(at int64) int64 { return old(at) + max(0, at-faultyFrom)*2/10_000 }
	case model.ClassDrift:
		old := w.clocks[raw(3)]
		w.clocks[raw(3)] = func(at int64) int64 { return old(at) + max(0, at-faultyFrom)*2/10_000 }
	case model.ClassStep:
		w.set(realtime(1), faultyFrom, 20_000_000)
	}
}

// record returns the edges of windows of all pairs. With stagger the windows of the pairs do not end at
// one moment.
func (w *world) record(class string, windows int, stagger bool) (all []timed) {
	w.faulty(class)
	for k := range windows {
		for i, p := range w.pairs {
			w.now = int64(k+1) * windowN
			if stagger {
				w.now += int64(i) * windowN / int64(len(w.pairs))
			}
			all = append(all, timed{w.now, w.said(class, i, p)})
		}
	}
	return all
}

func (w *world) said(class string, i int, p [2]string) model.ClockEdge {
	e := w.edge(p[0], p[1])
	if class == model.ClassUntrusted && w.now > faultyFrom && (p[0] == raw(4) || p[1] == raw(4)) {
		by := int64(i%5-2) * 3_000_000
		e.Lower, e.Upper, e.Offset = e.Lower+by, e.Upper+by, e.Offset+by
	}
	return e
}

// replay gives edges to a timeline that ticks every so often, from phase on, by a clock that is late.
func replay(t *testing.T, all []timed, every, phase int64, late time.Duration) (found []model.Finding) {
	t.Helper()
	now := int64(0)
	tl := New(Options{Now: func() time.Time { return time.Unix(0, epoch+now).Add(late) }})
	end := all[len(all)-1].at + 2*every
	for now = phase; now < end; now += every {
		for ; len(all) > 0 && all[0].at <= now; all = all[1:] {
			require.NoError(t, tl.AddEdge(all[0].edge))
		}
		found = append(found, tl.Advance(tl.opt.Now()).Findings...)
	}
	return found
}

var faults = []string{model.ClassSkew, model.ClassDrift, model.ClassStep, model.ClassUntrusted}

// opened returns the ids of a class, by clock, in the order of opening.
func opened(found []model.Finding, class string) map[string][]string {
	ids := map[string][]string{}
	for _, f := range found {
		if f.Class == class && f.Revision == 1 {
			ids[f.Clock] = append(ids[f.Clock], f.ID)
		}
	}
	return ids
}

func TestEpisodes_SameEdgesAndOtherTicks_SameIDs(t *testing.T) {
	for _, class := range faults {
		all := cluster(t, 61, 8).record(class, 25, false)
		want := opened(replay(t, all, windowN, 0, 0), class)
		require.NotEmpty(t, want, class)
		for name, got := range map[string][]model.Finding{
			"later in the window": replay(t, all, windowN, windowN/3, 0),
			"more often":          replay(t, all, windowN/4, windowN/8, 0),
			"a day later":         replay(t, all, windowN, 0, 24*time.Hour),
		} {
			assert.Equal(t, want, opened(got, class), "%s, %s", class, name)
		}
	}
}

// Two gateways that solve before and after some edges of a window judge other windows.
func TestEpisodes_WindowsEndAtOtherMoments_SameIDs(t *testing.T) {
	for _, class := range faults {
		for seed := range uint64(2) {
			all := cluster(t, 62+seed, 8).record(class, 25, true)
			want := opened(replay(t, all, windowN, 0, 0), class)
			require.NotEmpty(t, want, class)
			got := opened(replay(t, all, windowN, windowN/3, 0), class)
			require.NotEmpty(t, got, class)
			for clock, ids := range got {
				assert.Equal(t, want[clock], ids, "%s of %s", class, clock)
			}
		}
	}
}

func TestEpisodes_SameInputTwice_SameFindings(t *testing.T) {
	for _, class := range faults {
		all := cluster(t, 63, 8).record(class, 25, false)
		found := replay(t, all, windowN, 0, 0)
		require.NotEmpty(t, found)
		assert.Equal(t, found, replay(t, all, windowN, 0, 0), class)
	}
}

// A clock that is stepped again within the minute is the same finding, which opens again; an hour later
// it is another one.
func TestEpisodes_FoundAgain_GoesOnUnderItsID(t *testing.T) {
	w := cluster(t, 64, 6)
	for range 12 {
		w.window()
	}
	for range 2 {
		w.set(realtime(1), w.now, 30_000_000)
		for range 8 {
			w.window()
		}
	}
	found := w.of(model.ClassStep)
	require.Len(t, found, 4, "opened and closed, twice")
	for i, f := range found {
		assert.Equal(t, found[0].ID, f.ID)
		assert.Equal(t, int64(i+1), f.Revision)
		assert.Equal(t, []string{model.StatusOpen, model.StatusClosed, model.StatusUpdated, model.StatusClosed}[i], f.Status)
	}
	for range 30 {
		w.window()
	}
	w.set(realtime(1), w.now, 30_000_000)
	for range 8 {
		w.window()
	}
	later := w.of(model.ClassStep)[4:]
	require.Len(t, later, 2)
	assert.NotEqual(t, found[0].ID, later[0].ID)
	assert.Equal(t, int64(1), later[0].Revision)
}

// restartFrom runs a recording up to an open finding of the class, and restarts there.
func restartFrom(t *testing.T, class string) (w *world, open model.Finding) {
	t.Helper()
	w = cluster(t, 65, 8)
	w.faulty(class)
	for len(w.of(class)) == 0 {
		w.tick(class)
		require.Less(t, w.now, 100*sec, class)
	}
	open = w.of(class)[0]
	w.restart()
	w.findings = nil
	return w, open
}

// tick is a window in which the fault lasts.
func (w *world) tick(class string) {
	w.now += windowN
	for i, p := range w.pairs {
		require.NoError(w.t, w.tl.AddEdge(w.said(class, i, p)))
	}
	w.advance()
}

func TestRestart_OpenFinding_GoesOnUnderItsID(t *testing.T) {
	for _, class := range faults {
		w, open := restartFrom(t, class)
		w.advance()
		for _, f := range w.of(class) { // it may not have been sent before the restart
			assert.Equal(t, []any{open.ID, open.Revision}, []any{f.ID, f.Revision}, class)
		}
		require.Len(t, w.of(class), 1, class)
		w.findings = nil
		for range 3 {
			w.tick(class)
		}
		for _, f := range w.of(class) {
			assert.Equal(t, open.ID, f.ID, class)
			assert.Greater(t, f.Revision, open.Revision, class)
		}
		for id := range w.clocks { // nothing is wrong any more
			old, from := w.clocks[id], w.now
			w.clocks[id] = func(at int64) int64 { return old(from) + at - from }
		}
		if class == model.ClassSkew {
			w.set(realtime(2), w.now, -(w.now-faultyFrom)*2/10_000)
		}
		for range 40 {
			w.window()
		}
		last := closings(w.of(class))[open.ID]
		assert.Equal(t, model.StatusClosed, last.Status, class)
		assert.Equal(t, open.Start, last.Start, class)
	}
}

// closings are the last revisions, by id.
func closings(found []model.Finding) map[string]model.Finding {
	last := map[string]model.Finding{}
	for _, f := range found {
		last[f.ID] = f
	}
	return last
}

func TestRestart_ClockIsForgottenMeanwhile_FindingIsClosed(t *testing.T) {
	for _, class := range faults {
		w, open := restartFrom(t, class)
		w.now += int64(time.Hour)
		w.restart()
		w.advance()
		found := w.of(class)
		require.Len(t, found, 2, class)
		assert.Equal(t, []any{open.ID, open.Revision}, []any{found[0].ID, found[0].Revision}, "%s: it may not have been sent", class)
		assert.Equal(t, []any{open.ID, open.Revision + 1, model.StatusClosed}, []any{found[1].ID, found[1].Revision, found[1].Status}, class)
		assert.Empty(t, w.tl.watch.counts)
		assert.Zero(t, w.tl.watch.book.Len())
	}
}

// One window more that is wrong opens the finding, as without the restart.
func TestRestart_BeforeTheFindingOpens_CountGoesOn(t *testing.T) {
	all := cluster(t, 66, 8).record(model.ClassSkew, 40, false)
	want := opened(replay(t, all, windowN, 0, 0), model.ClassSkew)
	require.Len(t, want, 1)
	w := cluster(t, 66, 8)
	for len(all) > 0 && len(w.of(model.ClassSkew)) == 0 {
		for at := all[0].at; len(all) > 0 && all[0].at == at; all = all[1:] {
			w.now = at
			require.NoError(t, w.tl.AddEdge(all[0].edge))
		}
		w.advance()
		for _, c := range w.tl.watch.counts {
			if c.Wrong == 1 {
				w.restart()
				break
			}
		}
	}
	assert.Equal(t, want, opened(w.findings, model.ClassSkew))
}

func TestRestore_VersionBefore_StartsWithoutFindings(t *testing.T) {
	w, open := restartFrom(t, model.ClassSkew)
	var s map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(snapshotOf(w.tl), &s))
	delete(s, "findings")
	delete(s, "counts")
	s["version"] = json.RawMessage("1")
	s["episodes"] = json.RawMessage(`[{"class":"skew","clock":"` + realtime(2) + `","finding":{"ID":"x","Revision":1,"Evidence":"{}"},"wrong":2,"clean":0,"size":1,"reported_unix_nano":1}]`)
	data, err := json.Marshal(s)
	require.NoError(t, err)
	w.tl = New(w.tl.opt)
	require.NoError(t, w.tl.Restore(data))
	assert.Len(t, w.tl.State().Clocks, 16)
	for range 3 {
		w.tick(model.ClassSkew)
	}
	found := w.of(model.ClassSkew)
	require.NotEmpty(t, found)
	assert.Equal(t, int64(1), found[0].Revision)
	assert.Equal(t, open.ID, found[0].ID, "it is found again in the same minute")
}
