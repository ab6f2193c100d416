// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOrderFor_ManyAnswersKept_KeepsNoMore(t *testing.T) {
	a := New(Config{})
	a.groups.all = []*group{{}}
	w := &world{a: a, orders: make(map[pair]int, maxOrders), kindOrders: make(map[kindPair]int, maxKindOrders)}
	for i := range int32(maxOrders) {
		w.orders[pair{rank: i}] = 1
	}
	for i := range int64(maxKindOrders) {
		w.kindOrders[kindPair{x: kindPlace{seq: i + 1}}] = 1
	}
	x, y := &node{group: a.groups.all[0], name: "x"}, &node{group: a.groups.all[0], name: "y"}
	assert.Zero(t, w.orderFor(x, y, maxAsked))
	assert.Len(t, w.orders, maxOrders)
	assert.Len(t, w.kindOrders, maxKindOrders)
}
