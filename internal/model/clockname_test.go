// SPDX-License-Identifier: Apache-2.0

package model

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNamesOfClocks(t *testing.T) {
	for _, good := range []string{"host:a/1/raw", "service:übung 7/realtime", strings.Repeat("x", MaxClockName)} {
		require.NoError(t, CheckClockName(good))
		require.NoError(t, CheckTimelineName("timeline:"+good+"#1"))
	}
	for _, bad := range []string{"", "a\nb", "a\x00", "a\x7f", "a\u0085", "a\xff", strings.Repeat("x", MaxClockName+1)} {
		require.Error(t, CheckClockName(bad), "%.20q", bad)
		require.Error(t, CheckTimelineName(strings.Repeat(bad, 2)), "%.20q", bad)
	}
	err := CheckClockName(strings.Repeat("x", 1<<20))
	require.ErrorContains(t, err, "got a name of 1048576 bytes")
	assert.Less(t, len(err.Error()), 200)
}
