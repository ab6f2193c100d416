// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// walls is a world of real-time clocks alone that traces compare, each with each other.
func walls(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld(t, 7, Options{})
	for i := range n {
		w.clocks[realtime(i)] = linear(epoch+int64(i)*1e6, 0)
		for j := range i {
			w.join(realtime(j), realtime(i), model.EdgeMessage)
		}
	}
	for range 5 {
		w.window()
	}
	return w
}

// sets sets a clock from the next window on.
func (w *world) sets(id string, by int64) {
	old, begin := w.clocks[id], w.now
	w.clocks[id] = func(at int64) int64 {
		if at >= begin {
			return old(at) + by
		}
		return old(at)
	}
}

// partly is a window in which only some pairs are compared.
func (w *world) partly(pairs ...[2]string) {
	w.t.Helper()
	w.now += windowN
	for _, p := range pairs {
		e := w.edge(p[0], p[1])
		e.Stepped = true
		require.NoError(w.t, w.tl.AddEdge(e))
	}
	w.advance()
}

// One pair alone tells of a step: nobody is moved or named until the others were heard.
func TestOnePairTellsOfAStepFirst(t *testing.T) {
	for name, set := range map[string]int{"the reference": 0, "another": 2} {
		t.Run(name, func(t *testing.T) {
			w := walls(t, 4)
			ref, other := w.reference(), realtime(2)
			require.Equal(t, realtime(0), ref)
			w.sets(realtime(set), 2*sec)
			w.partly([2]string{ref, other})
			assert.Empty(t, w.of(model.ClassStep))
			for _, id := range []string{ref, other} {
				p := w.place(id, w.now-sec/2)
				assert.True(t, p.Stepped, id)
				assert.GreaterOrEqual(t, p.Bound, 2*sec, id)
			}
			for range 4 {
				w.window()
			}
			for i := range 4 {
				id, want := realtime(i), int64(0)
				if i == set {
					want = 1
				}
				assert.Equal(t, want, w.tl.State().clock(t, id).Steps, id)
				assert.Less(t, w.contains(id, w.now-sec).Bound, sec/10, id)
			}
			for _, f := range w.of(model.ClassStep) {
				assert.Equal(t, realtime(set), f.Clock)
				assert.NotContains(t, evidence.Encode(f.Evidence), "undecided")
			}
			assert.NotEmpty(t, w.of(model.ClassStep))
		})
	}
}

// Of two clocks nothing tells which one was set.
func TestOfTwoClocksAStepIsUndecided(t *testing.T) {
	w := walls(t, 2)
	w.sets(realtime(1), sec/20)
	for range 4 {
		w.window()
	}
	require.NotEmpty(t, w.of(model.ClassStep))
	for _, f := range w.of(model.ClassStep) {
		e := numbers(t, f)
		assert.True(t, e.Undecided)
		assert.ElementsMatch(t, []string{realtime(0), realtime(1)}, []string{f.Clock, e.Other})
	}
}

// The others are not waited for without end.
func TestAWaitEnds(t *testing.T) {
	w := walls(t, 4)
	reference := w.reference()
	w.sets(realtime(2), 2*sec)
	for range int(waitsFor.Nanoseconds()/windowN) + 2 {
		w.partly([2]string{realtime(0), realtime(2)})
	}
	assert.Empty(t, w.tl.waits)
	require.NotEmpty(t, w.of(model.ClassStep))
	e := numbers(t, w.of(model.ClassStep)[0])
	assert.True(t, e.Undecided)
	assert.Equal(t, reference, e.Other, "who was compared with it")
	for _, tr := range w.tl.tracks {
		assert.Nil(t, tr.doubt, tr.id)
	}
}

func (w *world) reference() string {
	w.t.Helper()
	c := w.tl.solution.Components()
	require.Len(w.t, c, 1)
	return c[0].Reference
}
