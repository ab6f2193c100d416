// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun_PrivateOutput_StaysOutOfTheLog(t *testing.T) {
	k := made(t)
	for _, private := range []bool{false, true} {
		text := map[bool]string{false: "open word", true: "secret word"}[private]
		r, err := k.Run(context.Background(), Command{Path: "echo", Args: []string{text}, Private: private})
		require.NoError(t, err)
		assert.Equal(t, text+"\n", r.Stdout)
	}
	assert.Contains(t, k.Log.String(), "open word")
	assert.NotContains(t, k.Log.String(), "secret word")
}
