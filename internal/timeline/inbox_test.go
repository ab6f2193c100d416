// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// While a solution is made, edges are taken and counters read. A test that waited for
// the solution would never end.
func TestNothingWaitsForASolution(t *testing.T) {
	w := cluster(t, 80, 3)
	w.window()
	taken := w.tl.Counters().Edges.Added
	w.tl.solving.Lock()
	w.now += windowN
	for _, p := range w.pairs {
		require.NoError(t, w.tl.AddEdge(w.edge(p[0], p[1])))
	}
	crossed := w.edge(raw(0), raw(1))
	crossed.Lower, crossed.Upper = crossed.Upper, crossed.Lower
	require.ErrorContains(t, w.tl.AddEdge(crossed), "lower bound above the upper")
	assert.Equal(t, taken, w.tl.Counters().Edges.Added, "those that wait are not counted yet")
	w.contains(raw(1), w.now)
	_, ok := w.tl.Resolve("h1")
	assert.True(t, ok)
	w.tl.solving.Unlock()
	c := w.tl.Counters()
	assert.Equal(t, taken+int64(len(w.pairs)), c.Edges.Added)
	assert.Equal(t, int64(1), c.Edges.LowerAboveUpper)
	assert.Equal(t, int64(1), c.Refused)
	before := w.tl.State().clock(t, raw(1)).Model.Until
	w.advance()
	assert.Greater(t, w.tl.State().clock(t, raw(1)).Model.Until, before, "they count in the next")
}

func TestInboxIsBounded(t *testing.T) {
	tl := New(Options{MaxClocks: 2})
	e := model.ClockEdge{Src: "a", Dst: "b", Upper: 1, Source: model.EdgeProbe, Stamps: model.StampUser}
	tl.solving.Lock()
	for range edgesOfClock * 2 {
		require.NoError(t, tl.AddEdge(e))
	}
	require.ErrorContains(t, tl.AddEdge(e), "got more edges during a solution; want at most 32, of 256 bytes each")
	tl.solving.Unlock()
	assert.Equal(t, int64(1), tl.Counters().EdgesOverflowed)
	assert.Equal(t, int64(32), tl.Counters().Edges.Added)
	// What was put by beyond a limit of the solver is counted, as what is added at once.
	tl.solving.Lock()
	e.Dst = "c"
	require.NoError(t, tl.AddEdge(e))
	tl.solving.Unlock()
	tl.Advance(time.Unix(0, epoch))
	assert.Equal(t, int64(1), tl.Counters().Refused)
	assert.Equal(t, int64(1), tl.Counters().Edges.TooManyClocks)
}

// Names of edges that wait are counted in bytes.
func TestInbox_LongNames_StayWithinBytes(t *testing.T) {
	tl := New(Options{MaxClocks: 4})
	tl.solving.Lock()
	defer tl.solving.Unlock()
	taken := 0
	for i := range 64 {
		name := fmt.Sprint("host:", i, strings.Repeat("x", 240))
		if tl.AddEdge(model.ClockEdge{Src: name + "/a", Dst: name + "/b", Upper: 1, Source: model.EdgeProbe, Stamps: model.StampUser}) == nil {
			taken++
		}
	}
	assert.LessOrEqual(t, tl.inbox.bytes, 64*bytesOfEdge)
	assert.Less(t, taken, 32, "of names this long half as many find room")
	assert.Equal(t, int64(64-taken), tl.stats.InboxOverflowed.Load())
}

// A sender that names another timeline in each model fills a bounded number of them, also between two
// solutions.
func TestAddModel_NewTimelinesWithoutEnd_AreRefused(t *testing.T) {
	tl := New(Options{MaxClocks: 4})
	refused := 0
	for i := range 100 {
		m := model.ClockModel{Clock: "a", Timeline: Prefix + fmt.Sprint(i), From: int64(i), Until: int64(i + 1), At: int64(i)}
		if err := tl.AddModel(m); err != nil {
			require.ErrorContains(t, err, "got timeline 9; want at most 8")
			refused++
		}
	}
	assert.Len(t, tl.scales, 8)
	assert.Equal(t, 92, refused)
	assert.Equal(t, int64(92), tl.Counters().Refused)
	for now := time.Now(); len(tl.scales) > 0; now = now.Add(time.Hour) {
		tl.Advance(now)
	}
	require.NoError(t, tl.AddModel(model.ClockModel{Clock: "a", Timeline: Prefix + "next", From: 200, Until: 201, At: 200}), "what no clock stands on is forgotten")
}

// A reader of a feed that takes nothing holds a model of as many clocks as there may be.
func TestFeed_ModelsOfManyClocks_AreBounded(t *testing.T) {
	tl := New(Options{MaxClocks: 4})
	f := tl.Feed()
	defer f.Close()
	for i := range 10 {
		tl.feed(&Outcome{Models: []model.ClockModel{{Clock: fmt.Sprint(i)}, {Clock: "0"}}})
	}
	assert.Len(t, f.models, 4)
	assert.Equal(t, int64(6), tl.stats.FeedsOverflowed.Load())
}
