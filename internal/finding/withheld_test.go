// SPDX-License-Identifier: Apache-2.0

package finding

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWithheld_Full_CountsWhatItDoesNotRemember(t *testing.T) {
	w := newWithheld()
	for n := range maxWithheld {
		w.add(place(n), at(300*n/maxWithheld))
	}
	assert.False(t, w.add(place(0), at(300)), "it is remembered")
	for range 2 {
		assert.True(t, w.add(place(maxWithheld), at(300)), "there is no room")
	}
	assert.True(t, w.add(place(maxWithheld), at(899)))
	assert.False(t, w.add(place(maxWithheld), at(899)), "others were not found any more")
	assert.False(t, w.add(place(0), at(899)), "it was found again meanwhile")
}
