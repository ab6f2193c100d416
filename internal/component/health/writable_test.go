// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

func TestExplainWrite_EachCause_SaysWhatToDo(t *testing.T) {
	at := func(err error) error {
		return fmt.Errorf("write storage: %w", &fs.PathError{Op: "write", Path: "/missing/file", Err: err})
	}
	require.NoError(t, ExplainWrite(nil))
	for want, err := range map[string]error{
		"write storage: write /missing/file: no space left on device: the disk of /missing is full: free room there, or enlarge it; nothing has to be restarted":      at(syscall.ENOSPC),
		"write storage: write /missing/file: disk quota exceeded: raise the quota, or free room in /missing":                                                          at(syscall.EDQUOT),
		"write storage: write /missing/file: input/output error: look at the disk of /missing":                                                                        at(syscall.EIO),
		"the storage extension has run out of available space: its file has the size that the storage allows (file_storage::max_size): raise it, or lower queue_size": errors.Join(storage.ErrStorageFull),
		"other": errors.New("other"),
	} {
		assert.EqualError(t, ExplainWrite(err), want)
	}
	assert.Equal(t, "/missing", Full(at(syscall.ENOSPC)))
	assert.Empty(t, Full(at(syscall.EIO)))
}

func TestRoom_Directory_IsWithinItsDisk(t *testing.T) {
	free, total, err := Room(t.TempDir())
	require.NoError(t, err)
	assert.Positive(t, total)
	assert.LessOrEqual(t, free, total)
	_, _, err = Room("/does/not/exist")
	assert.ErrorContains(t, err, "ask for the room of /does/not/exist")
}
