// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// However many streams a rank has, the first operation of each is at its front.
func TestFrontsOfManyStreams(t *testing.T) {
	v := &view{}
	for i := range int64(200) {
		v.open = append(v.open, op{opKey: opKey{group: int32(i % 3), seq: i}, p2p: i%2 == 1, batch: none, peer: i * 7 % 50})
	}
	first := map[stream]int32{}
	for i := range v.open {
		if _, ok := first[v.open[i].stream()]; !ok {
			first[v.open[i].stream()] = int32(i)
		}
	}
	assert.Greater(t, len(first), fewStreams)
	for i, at := range fronts(v) {
		assert.Equal(t, first[v.open[i].stream()], at, i)
	}
}

// Signatures that fall on one spot are told apart.
func TestSignaturesOnOneSpot(t *testing.T) {
	table := newSigTable()
	for range 2 {
		for i := range int32(3 * recentSigs) {
			o := model.StateOp{Name: "all_reduce", InElems: model.Some(int64(i))}
			assert.Equal(t, i, table.of(&o))
			assert.Equal(t, i, table.of(&o))
		}
	}
}
