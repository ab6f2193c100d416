// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Raw clocks begin at their host's start. Until a real-time clock is known beside one,
// nobody can tell what date it was, and a span placed there would stand in 1970.
func TestNothingIsPlacedOnATimelineWithoutADate(t *testing.T) {
	w := newWorld(t, 1, Options{})
	for i := range 3 {
		w.host(i, 10, 0)
	}
	pairs := w.pairs
	w.pairs = nil
	w.join(raw(0), raw(1), model.EdgeProbe)
	w.join(raw(1), raw(2), model.EdgeProbe)
	for range 3 {
		w.window()
	}
	at := w.now - sec
	for i := range 3 {
		_, ok := w.tl.Place(raw(i), w.clocks[raw(i)](at))
		assert.False(t, ok, "a timeline without a date")
	}
	_, ok := w.tl.Between(raw(0), w.clocks[raw(0)](at), raw(2), w.clocks[raw(2)](at))
	assert.True(t, ok, "differences need no date")
	w.pairs = append(w.pairs, pairs...)
	for range 2 {
		w.window()
	}
	p, ok := w.tl.Place(raw(1), w.clocks[raw(1)](w.now-sec))
	require.True(t, ok)
	assert.Less(t, distance(p.Time, epoch+w.now-sec), sec)
}
