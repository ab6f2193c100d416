package straggler

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Who could not be compared could not have been worst by chance.
func TestWhoIsNotComparedIsNoTrial(t *testing.T) {
	w := liveWorld(t, 4)
	inferEnds(w, 3)
	for n := range int64(4) {
		w.step(n, each(4, liveStep, map[int]program{1: "h24:data_loading c26 h1:forward * c10 h1:backward * c5 s"})...)
	}
	rec := w.e.sorted()[0].window[3]
	worst, peers := rec.worst(&candidate{}, rec.ranks[1].role)
	assert.Equal(t, 1, worst)
	assert.Equal(t, 3, peers, "no segment of rank 2 is known")
}
