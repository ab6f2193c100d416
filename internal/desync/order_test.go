// SPDX-License-Identifier: Apache-2.0

package desync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestOrderCycle(t *testing.T) {
	check(t, []told{
		{
			"two communicators are entered in opposite orders", `
			group A 0,1
			group B 0,1
			rank 0: A ar 1
			rank 1: B ar 1`,
			desync.Hang,
			[]string{"order_cycle 0-1: all_reduce 1 of A"},
		}, {
			"three of them in a ring, with a victim", `
			group A 0,1
			group B 1,2
			group C 2,0
			group V 0,3
			rank 0: A ar 5
			rank 1: B ar 5
			rank 2: C ar 5
			rank 3: V ar 2`,
			desync.Hang,
			[]string{"order_cycle 0-2: all_reduce 5 of A; 3 wait"},
		}, {
			"in one order: only the first stalls", `
			group A 0,1
			group B 0,1
			rank 0-1: A ar 1; B ar 1`,
			desync.Hang,
			[]string{"stalled_op: all_reduce 1 of A; 0-1 wait"},
		}, {
			"messages to one another, each sent before it is received", `
			group P 0,1
			rank 0: P send>1; P recv<1
			rank 1: P send>0; P recv<0`,
			desync.Hang,
			[]string{"order_cycle 0-1: message 0 -> 1 of P"},
		}, {
			"the same in one batch wait for nobody", `
			group P 0,1
			rank 0: P send>1 batch=1; P recv<1 batch=1
			rank 1: P send>0 batch=1; P recv<0 batch=1`,
			desync.Hang,
			[]string{"stalled_op: message 0 -> 1 of P; 0-1 wait", "stalled_op: message 1 -> 0 of P; 0-1 wait"},
		},
	})
}

// All have enqueued all of it: whether devices run one communicator after the other is not
// recorded, so that the cycle is less sure than one of hosts.
func TestOrderOfDevicesIsLessSure(t *testing.T) {
	hosts := conclude(t, "group A 0,1\ngroup B 0,1\nrank 0: A ar 1\nrank 1: B ar 1")
	devices := conclude(t, "group A 0,1\ngroup B 0,1\nrank 0: A ar 1; B ar 1\nrank 1: B ar 1; A ar 1")
	require.Len(t, devices.Roots, 1)
	assert.Equal(t, model.ClassOrderCycle, devices.Roots[0].Finding.Class)
	assert.Less(t, devices.Roots[0].Finding.Confidence, hosts.Roots[0].Finding.Confidence)
}

// A send that is not received, or a receive that should not be: of two, neither is blamed.
func TestP2PUnmatched(t *testing.T) {
	for name, text := range map[string]string{
		"the receiver has gone on": `
			group P 0,1
			group W 0-3
			rank 0: W ar 6 done; P send>1
			rank 1-3: W ar 6 done; W ar 7`,
		"the sender has gone on": `
			group P 0,1
			group W 0-3
			rank 1: W ar 6 done; P recv<0
			rank 0,2-3: W ar 6 done; W ar 7`,
	} {
		t.Run(name, func(t *testing.T) {
			rep := conclude(t, text)
			require.Len(t, rep.Roots, 1)
			assert.Equal(t, model.ClassP2PUnmatched, rep.Roots[0].Finding.Class)
			assert.Equal(t, []int64{0, 1}, named(rep))
			assert.NotEqual(t, 1, len(accused(rep)), "one of two is not blamed")
			unmoved(t, text, rep)
		})
	}
	check(t, []told{
		{
			"the other end waits for nothing: it has not come yet", `
			group P 0,1
			rank 0: P ar 3 done; P send>1
			rank 1: P ar 3 done`,
			desync.Hang,
			[]string{"not_scheduled 1: send 0 -> 1 of P; 0 wait"},
		}, {
			"the other end waits elsewhere for who waits for nothing", `
			group P 0,1
			group Q 1,2
			rank 0: P send>1
			rank 1: Q recv<2
			rank 2: Q ar 1 done`,
			desync.Hang,
			[]string{"not_scheduled 2: recv 2 -> 1 of Q; 1 wait, 1 more through them"},
		},
	})
}

// Channels are counted from the front, not by the ranks' own numbers, which differ.
func TestMessagesAreMatchedByCount(t *testing.T) {
	rep := conclude(t, `
		group P 0-2
		rank 0: P send>1 11981; P send>1 11982
		rank 1: P recv<0 13696
		rank 2: P ar 1 done`)
	assert.Equal(t, []string{"stalled_op: message 0 -> 1 of P; 0-1 wait"}, said(rep))
}

// The two messages of a batch end together. That is no circle of their rank with itself: it waits for its
// neighbour, and with that for a circle elsewhere.
func TestBatchBehindACircle_IsNoCircleOfItsOwn(t *testing.T) {
	const circle = `
		rank 0: W ar 5; P send>1 batch=1; P recv<1 batch=1
		rank 1: P send>0 batch=1; P recv<0 batch=1; P send>2 batch=2; P recv<2 batch=2; W ar 5`
	for name, text := range map[string]string{
		"one batch":  "group W 0-2\ngroup P 0-2" + circle + "\nrank 2: P send>1 batch=1; P recv<1 batch=1; W ar 5",
		"two of one": "group W 0-2\ngroup P 0-2" + circle + "\nrank 2: P send>1 batch=1; P recv<1 batch=1; P send>1 batch=2; P recv<1 batch=2; W ar 5",
		"a chain": "group W 0-3\ngroup P 0-3" + circle + `
		rank 2: P send>1 batch=1; P recv<1 batch=1; P send>3 batch=2; P recv<3 batch=2; W ar 5
		rank 3: P send>2 batch=1; P recv<2 batch=1; W ar 5`,
	} {
		rep := conclude(t, text)
		for i := range rep.Roots {
			assert.NotEqual(t, []int64{2}, rep.Roots[i].Finding.Ranks, name)
			assert.NotEqual(t, []int64{3}, rep.Roots[i].Finding.Ranks, name)
		}
		assert.Contains(t, named(rep), int64(0), name)
	}
}
