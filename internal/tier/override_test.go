// SPDX-License-Identifier: Apache-2.0

package tier

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const override = "LOCKSTEP_TEST_OVERRIDE"

func TestNOr_VariableSet_OverridesBothTiers(t *testing.T) {
	for _, value := range []string{"quick", "full"} {
		t.Setenv(Env, value)
		t.Setenv(override, "7")
		assert.Equal(t, 7, NOr(t, override, 3, 50), value)
	}
}

func TestNOr_VariableUnset_ReturnsTheNumberOfTheTier(t *testing.T) {
	for value, want := range map[string]int{"quick": 3, "full": 50} {
		t.Setenv(Env, value)
		assert.Equal(t, want, NOr(t, override, 3, 50), value)
	}
}

func TestNOr_NoNumber_Fails(t *testing.T) {
	for _, value := range []string{"many", "0", "-1", "1.5"} {
		t.Setenv(override, value)
		r := &recorder{TB: t}

		NOr(r, override, 3, 50)

		require.True(t, r.failed, value)
	}
}
