// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEverybodyHasATurnInEachRound(t *testing.T) {
	var s schedule
	assert.Nil(t, s.due())
	all := []*target{{}, {}, {}, {}, {}, {}, {}}
	s.set(all)
	for range 50 {
		seen := map[*target]bool{}
		for range all {
			seen[s.due()] = true
		}
		assert.Len(t, seen, len(all))
	}
	s.set(all[:1])
	assert.Same(t, all[0], s.due())
	assert.Same(t, all[0], s.due())
	s.set(nil)
	assert.Nil(t, s.due())
}
