// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// A ring of a stranger may be all that is there between two jobs.
func TestHealth_DeniedRingIsLeftOfTheRead_IsNotReported(t *testing.T) {
	dir := t.TempDir()
	foreign := filepath.Join(dir, "1.ring")
	require.NoError(t, os.Rename(newRingFile(t, dir, 3, 64, 5).path, foreign))
	own := newRingFile(t, dir, 3, 64, 6).path
	deny(t, dir, foreign)
	rd, b := readerOf(t, dir)
	h := &statusHost{}
	rd.health.Start(h)
	rd.look()
	require.Len(t, rd.rings, 1)
	require.NoError(t, os.Remove(own))
	rd.rings[own].close(rd)
	delete(rd.rings, own)
	rd.look()
	assert.Nil(t, h.event)
	assert.Equal(t, int64(1), b.counter(t, "rings_refused"))
}

// A file that is no ring beside a denied one: not every refusal is one of owner or permissions.
func TestHealth_DeniedRingBesideNoRing_IsNotReported(t *testing.T) {
	dir := t.TempDir()
	denied := newRingFile(t, dir, 3, 64, 5).path
	junk := filepath.Join(dir, "a.ring")
	require.NoError(t, os.WriteFile(junk, []byte("no ring"), 0o600))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(junk, old, old)) // the second look does not open it again
	deny(t, dir, denied)
	rd, b := readerOf(t, dir)
	h := &statusHost{}
	rd.health.Start(h)
	rd.look()
	rd.look()
	assert.Nil(t, h.event)
	assert.Equal(t, int64(2), b.counter(t, "rings_refused"))
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
