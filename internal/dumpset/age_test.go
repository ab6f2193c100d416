package dumpset

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
