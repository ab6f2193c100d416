// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGroupTable_ManyListsOfMembers_RemembersTheLast(t *testing.T) {
	table := newGroupTable(1)
	lists := make([][]int64, maxLast+10)
	for i := range lists {
		lists[i] = []int64{int64(i)}
		table.digest(lists[i])
	}
	assert.Equal(t, maxLast, table.last.Len())
	assert.False(t, table.last.Has(&lists[0][0]))
}

func TestPlaces_ManyViews_KeepsTheLast(t *testing.T) {
	p := newPlaces()
	views := make([]view, maxPlaces+10)
	for i := range views {
		p.of(&views[i])
	}
	assert.Equal(t, maxPlaces, p.byView.Len())
	assert.False(t, p.byView.Has(&views[0]))
}
