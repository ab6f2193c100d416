// SPDX-License-Identifier: Apache-2.0

package dumpset

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A dict that the memo gives back is filled behind a list that was made since, and is let go:
// the list stays.
func TestADictOfTheMemoIsFilledLate(t *testing.T) {
	for _, tail := range []string{"a.", "\x85."} {
		path := filepath.Join(t.TempDir(), "nccl_trace_rank_0")
		dump := "\x80\x02}q\x00]K\x07ah\x00\x8c\x09record_idK\x02s" + tail
		require.NoError(t, os.WriteFile(path, []byte(dump), 0o600))
		assert.NotPanics(t, func() { Read(t.Context(), []string{path}, Options{}) })
	}
}
