// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// statusHost keeps the latest status.
type statusHost struct {
	component.Host

	event *componentstatus.Event
}

func (h *statusHost) Report(e *componentstatus.Event) { h.event = e }

// deny makes the rings of a directory such that this process may not read them, and allow undoes it
// for one. Root may read everything: for root, the owner is a stranger.
func deny(t *testing.T, dir string, rings ...string) (allow func(ring string)) {
	t.Helper()
	root := os.Geteuid() == 0
	if root {
		require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // a directory that anybody may write vouches for no owner
	}
	for _, path := range rings {
		if root {
			require.NoError(t, os.Chown(path, 65533, 65533))
		} else {
			require.NoError(t, os.Chmod(path, 0))
		}
	}
	return func(path string) {
		if root {
			require.NoError(t, os.Chown(path, 0, 0))
		} else {
			require.NoError(t, os.Chmod(path, 0o600))
		}
	}
}

func TestHealth_EveryRingIsDenied_IsReportedUntilOneIsRead(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(dir, "1.ring")
	require.NoError(t, os.Rename(newRingFile(t, dir, 3, 64, 5).path, one))
	two := newRingFile(t, dir, 3, 64, 6).path
	allow := deny(t, dir, one, two)
	rd, _ := readerOf(t, dir)
	h := &statusHost{}
	rd.health.Start(h)
	rd.look()
	require.NotNil(t, h.event)
	assert.Equal(t, componentstatus.StatusRecoverableError, h.event.Status())
	require.EqualError(t, h.event.Err(), fmt.Sprintf(
		"read rings in %s: all 2 are refused for their owner or their permissions; run the collector as the user of the job, or give both a common group", dir))
	allow(two)
	rd.look()
	assert.Equal(t, componentstatus.StatusOK, h.event.Status(), "%v", h.event.Err())
}

// A file that is no ring says nothing of what the collector may read.
func TestHealth_NoRingAmongTheFiles_IsNotReported(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.ring"), []byte("no ring"), 0o600))
	rd, b := readerOf(t, dir)
	h := &statusHost{}
	rd.health.Start(h)
	rd.look()
	assert.Nil(t, h.event)
	assert.Equal(t, int64(1), b.counter(t, "rings_refused"))
}
