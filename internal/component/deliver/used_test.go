// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUsed_AllThatAskKnow(t *testing.T) {
	outer, byOuter := WatchUse(t.Context())
	inner, byInner := WatchUse(outer)
	other, byOther := WatchUse(outer)
	assert.False(t, byOuter() || byInner())
	Used(inner)
	assert.True(t, byOuter() && byInner())
	assert.False(t, byOther())
	Used(other)
	assert.True(t, byOther())
	assert.NotPanics(t, func() { Used(t.Context()) }, "nothing asks")
}
