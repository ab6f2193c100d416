// SPDX-License-Identifier: Apache-2.0

package sequence

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNumberer_Take_NumbersFollowEachOtherByJob(t *testing.T) {
	n := NewNumberer("p", 4)
	assert.Equal(t, Numbers{Source: "p-0", First: 0, Count: 3}, n.Take("a", 3))
	assert.Equal(t, Numbers{Source: "p-1", First: 0, Count: 2}, n.Take("b", 2))
	assert.Equal(t, Numbers{Source: "p-0", First: 3, Count: 1}, n.Take("a", 1))
	assert.Equal(t, NumbererStats{Numbered: 6}, n.Stats())
}

func TestNumberer_Refuse_NumbersAreVoidOnceAccepted(t *testing.T) {
	n := NewNumberer("p", 4)
	n.Take("a", 2)
	refused := n.Take("a", 3)
	n.Refuse(refused)
	again := n.Take("a", 1)
	assert.Equal(t, Ranges{{2, 4}}, again.Void)
	n.Refuse(again)
	assert.Equal(t, Ranges{{2, 5}}, n.Take("a", 1).Void, "with those that it named")
	assert.Empty(t, n.Take("a", 1).Void, "they are named once")
	assert.EqualValues(t, 4, n.Stats().Void)
}

func TestNumberer_TooManyJobs_AForgottenStreamIsNotContinued(t *testing.T) {
	n := NewNumberer("p", 1)
	n.Take("a", 2)
	n.Take("b", 2)
	n.Refuse(Numbers{Source: "p-0", First: 0, Count: 2})
	assert.Equal(t, Numbers{Source: "p-2", First: 0, Count: 2}, n.Take("a", 2))
	assert.EqualValues(t, 2, n.Stats().Forgotten)
}
