// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Each edge comes with its own copies of two names: the solver keeps one of each clock.
func TestSolver_EdgesOfOneClock_ShareItsName(t *testing.T) {
	s := New(Options{})
	for i := range 4 {
		for range 2 { // new, and in place of one held
			require.NoError(t, s.Add(model.ClockEdge{
				Src: strings.Clone("a"), Dst: fmt.Sprint("b", i), Upper: 1, Source: model.EdgeProbe, Stamps: model.StampUser,
			}))
		}
	}
	for i := range s.edges {
		assert.Same(t, unsafe.StringData(s.clocks[s.ids["a"]].name), unsafe.StringData(s.edges[i].Src))
	}
}

// Pairs of new clocks whose bounds cross are remembered up to the number of clocks.
func TestSolver_CrossingsOfNewClocks_AreBounded(t *testing.T) {
	s := New(Options{MaxClocks: 8})
	for i := range 100 {
		require.Error(t, s.Add(model.ClockEdge{
			Src: fmt.Sprint("a", i), Dst: fmt.Sprint("b", i), Lower: 2, Upper: 1, Source: model.EdgeProbe, Stamps: model.StampUser,
		}))
	}
	assert.Equal(t, 8, s.crossing.Len())
	assert.Equal(t, int64(92), s.Counters().CrossingOverflow)
}
