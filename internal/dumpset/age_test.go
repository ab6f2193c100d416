// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// aged is a dump that was written so long after its newest operation, which is open.
func aged(after, pause time.Duration, stacks bool) *item {
	newest := time.Unix(1000, 0)
	return &item{changed: newest.Add(after), pause: pause, stacks: stacks, light: &model.RankState{
		LastEnqueue: newest.UnixNano(), Ops: make([]model.StateOp, 1),
	}}
}

// done has nothing open.
func done(it *item) *item {
	it.light.Ops = nil
	return it
}

// ranOut has something open of which the timeout was 10 minutes.
func ranOut(it *item) *item {
	it.timeout = 10 * time.Minute
	return it
}

// Files that were changed when what is open in them would have been given up are copies, and so
// are those that are older than what is in them.
func TestLostTimes(t *testing.T) {
	const m = time.Minute
	for _, c := range []struct {
		name  string
		taken []*item
		lost  bool
	}{
		{"long after the timeout", []*item{ranOut(aged(12*m, 0, false)), ranOut(aged(20*m, 0, false))}, true},
		{"one is not", []*item{ranOut(aged(12*m, 0, false)), ranOut(aged(10*m, 0, false))}, false},
		{"who has nothing open waits for nobody", []*item{ranOut(aged(12*m, 0, false)), done(aged(m, 0, false))}, true},
		{"of before", []*item{ranOut(aged(-m, 0, false))}, true},
		{"the timeout is not known", []*item{aged(59*m, 0, false)}, false},
		{"nor is it ever so long", []*item{aged(62*m, 0, false)}, true},
		{"nothing is open", []*item{done(aged(90*m, 0, false))}, false},
		{"nothing is known", []*item{{}}, false},
	} {
		assert.Equal(t, c.lost, doubt(c.taken).TimesLost != "", c.name)
	}
}

func TestDoubt(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name  string
		taken []*item
		until time.Duration // 0: none
	}{
		{"stacks may have been named meanwhile", []*item{aged(14*s, 0, true), aged(13*s, 0, true)}, 15 * s},
		{"PyTorch names them no longer", []*item{aged(14*s, 0, true), aged(15*s, 0, true)}, 0},
		{"who seldom calls anything", []*item{aged(14*s, 0, true), done(aged(60*s, 0, true))}, 15 * s},
		{"some wait for long while others go on", []*item{done(aged(s, 0, true)), aged(600*s, 0, true)}, 0},
		{"without stacks a dump is written at once", []*item{aged(14*s, 0, false)}, 0},
		{"one with stacks, one without", []*item{aged(14*s, 0, false), aged(14*s, 0, true)}, 15 * s},
		{"each has paused for as long, and its watchdog waits no longer", []*item{ranOut(aged(605*s, 700*s, false)), aged(605*s, 700*s, false)}, 0},
		{"each has paused for as long before", []*item{aged(40*s, 50*s, false), aged(45*s, 45*s, false)}, 50 * s},
		{"one has not", []*item{aged(40*s, 50*s, false), aged(45*s, 44*s, false)}, 0},
		{"the file's time is of before: of another clock", []*item{aged(-s, 50*s, true)}, 0},
		{"of one it is not known", []*item{aged(40*s, 50*s, false), {}}, 0},
		{"nothing waits", []*item{done(aged(s, 50*s, true))}, 0},
		{"nothing is known", nil, 0},
	} {
		d := doubt(c.taken)
		assert.Equal(t, c.until, d.Until, c.name)
		assert.Equal(t, c.until > 0, d.Why != "", c.name)
	}
}

// Twice is no rhythm: a job compiles, and loads a checkpoint.
func TestPause(t *testing.T) {
	var d flightrecorder.Dump
	at := int64(0)
	add := func(gaps ...int64) {
		for _, gap := range gaps {
			at += gap * int64(time.Second)
			d.Entries = append(d.Entries, flightrecorder.Entry{Created: at})
		}
	}
	add(1, 60, 1, 90)
	assert.Equal(t, time.Second, pause(&d))
	add(5, 7)
	assert.Equal(t, 7*time.Second, pause(&d))
	d.Entries = append(d.Entries, flightrecorder.Entry{}) // it does not say when
	assert.Equal(t, 7*time.Second, pause(&d))
	assert.Zero(t, pause(&flightrecorder.Dump{}))
}

func TestByWatchdog(t *testing.T) {
	const s = time.Second
	waits := func(after time.Duration) *item {
		it := ranOut(aged(after, 0, false))
		it.light.Ops[0].Created = it.light.LastEnqueue
		return it
	}
	for _, c := range []struct {
		name  string
		taken []*item
		want  bool
	}{
		{"as soon as it had run out", []*item{waits(600 * s), waits(599 * s)}, true},
		{"call stacks were named meanwhile", []*item{waits(631 * s), done(waits(630 * s))}, true},
		{"who was asked before", []*item{waits(599 * s)}, false},
		{"a copy", []*item{waits(700 * s)}, false},
		{"one is a copy", []*item{waits(600 * s), waits(700 * s)}, false},
		{"nothing is open", []*item{done(waits(600 * s))}, false},
		{"no timeout is known", []*item{aged(600*s, 0, false)}, false},
		{"nothing", nil, false},
	} {
		assert.Equal(t, c.want, byWatchdog(c.taken), c.name)
	}
}

// What a watchdog wrote had stood for the timeout: it is told for certain, while of copies and of
// what was asked for nothing shows that the job stood still. Call stacks do not decide that.
func TestWhatAWatchdogWroteStoodStill(t *testing.T) {
	confidence := func(after time.Duration, stacks bool) (float64, bool) {
		dumps := world(8, 0)
		for _, d := range dumps {
			d.Stacks = stacks
		}
		paths := write(t, filepath.Join(t.TempDir(), "llama"), "rank_", dumps)
		for _, p := range paths {
			at := time.Unix(1758580155+10, 0).Add(after) // after the operation that is open
			require.NoError(t, os.Chtimes(p, at, at))
		}
		r := Read(t.Context(), paths, Options{})
		require.Len(t, r.Hangs, 1)
		namesRank2(t, &r.Hangs[0])
		return r.Hangs[0].Roots[0].Finding.Confidence, r.Hangs[0].Untimed
	}
	for _, stacks := range []bool{false, true} {
		sure, untimed := confidence(10*time.Minute+2*time.Second, stacks)
		assert.False(t, untimed, stacks)
		for _, other := range []time.Duration{5 * time.Minute, 20 * time.Minute, 365 * 24 * time.Hour} {
			less, untimed := confidence(other, stacks)
			assert.True(t, untimed, other)
			assert.Less(t, less, sure, other)
		}
	}
}
