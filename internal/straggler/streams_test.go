// SPDX-License-Identifier: Apache-2.0

package straggler

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever number is guessed, a stream has the numbers that were noted of it in the step.
func TestStreamsAreToldApartWhateverIsGuessed(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var table streamTable
	for range 50 {
		table.begin()
		want := map[streamKey]numbers{}
		for range rng.IntN(40) {
			key, n := streamKey{group: rng.Uint32N(4), src: rng.Int32N(3), dst: rng.Int32N(3)}, rng.Int64N(100)
			was, known := want[key]
			if !known {
				was = numbers{n, n}
			}
			want[key] = numbers{min(was.low, n), max(was.high, n)}
			id := table.add(key, rng.Int32N(40), n, n)
			require.Equal(t, key, table.known[id].key)
		}
		assert.Equal(t, len(want), table.used)
		for group := range uint32(4) {
			for end := range int32(9) {
				key := streamKey{group: group, src: end / 3, dst: end % 3}
				id, here := table.find(key)
				of, known := want[key]
				require.Equal(t, known, here, "streams of steps before are none of this one")
				if here {
					assert.Equal(t, of, table.known[id].of)
				}
			}
		}
	}
}

func TestStreamsThatComeNoMoreAreForgotten(t *testing.T) {
	var table streamTable
	for n := range int64(20 * leastStreams) {
		table.begin()
		for k := range int64(10) {
			table.add(streamKey{group: uint32(10*n + k)}, 0, 1, 1)
		}
		require.LessOrEqual(t, len(table.known), leastStreams+10)
		require.Len(t, table.ids, len(table.known))
	}
}

// What is remembered by a number that another stream has by now is none of that one.
func TestANumberThatWasGivenAnewIsNoStream(t *testing.T) {
	var table streamTable
	table.begin()
	table.add(streamKey{group: 2}, 5, 1, 1)
	was := streamKey{group: 1}
	id, ok := table.findNear(was, table.ids[streamKey{group: 2}])
	assert.False(t, ok, "got %d", id)
}
