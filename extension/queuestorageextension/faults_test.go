// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// reporting is a host that notes the last status.
type reporting struct{ last *componentstatus.Event }

func (*reporting) GetExtensions() map[component.ID]component.Component { return nil }
func (r *reporting) Report(e *componentstatus.Event)                   { r.last = e }

func full(dir string) error {
	return &fs.PathError{Op: "write", Path: filepath.Join(dir, "exporter_test__traces"), Err: syscall.ENOSPC}
}

// A full disk shows in the status with the directory and its room, until there is room.
func TestFaults_DiskFull_ReportedUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	f, h, dir := newFaults(zap.NewNop()), &reporting{}, t.TempDir()
	f.status.Start(h)
	free := uint64(0)
	f.room = func(at string) (uint64, uint64, error) {
		assert.Equal(t, dir, at)
		return free, 8 << 20, nil
	}
	now := time.Now()
	f.wrote("test for traces", 1000, true, nil, now)
	require.Nil(t, h.last)
	f.wrote("test for traces", 500_000, true, full(dir), now)
	require.NotNil(t, h.last)
	assert.Equal(t, componentstatus.StatusRecoverableError, h.last.Status())
	require.ErrorContains(t, h.last.Err(), "write the queue of test for traces: write "+dir+"/exporter_test__traces: no space left on device: the disk of "+dir+" has ")
	require.ErrorContains(t, h.last.Err(), "free room there, or enlarge it; nothing has to be restarted")
	f.wrote("test for traces", 100, true, nil, now.Add(time.Second)) // a small one found room
	free = leastRoom
	f.look(now)
	assert.Equal(t, componentstatus.StatusRecoverableError, h.last.Status())
	free = leastRoom + 1_000_000
	f.look(now)
	assert.Equal(t, componentstatus.StatusOK, h.last.Status())
}

// What names no disk ends with a request that is stored some time after the last refusal.
func TestFaults_OtherCause_EndsWithWrites(t *testing.T) {
	t.Parallel()
	f, h := newFaults(zap.NewNop()), &reporting{}
	f.status.Start(h)
	now := time.Now()
	f.wrote("test for traces", 1000, true, storage.ErrStorageFull, now)
	require.ErrorContains(t, h.last.Err(), "file_storage::max_size")
	f.look(now)
	f.wrote("test for traces", 10, false, nil, now.Add(2*calm)) // no request
	f.wrote("test for traces", 10, true, nil, now.Add(calm-1))
	assert.Equal(t, componentstatus.StatusRecoverableError, h.last.Status())
	f.wrote("test for traces", 10, true, nil, now.Add(calm))
	assert.Equal(t, componentstatus.StatusOK, h.last.Status())
}

// The queue tries to delete a request once. Where a full disk refuses that, the request would keep its room for ever.
func TestWrite_DiskFullAtDeletion_DeletedLater(t *testing.T) {
	t.Parallel()
	d := newDisk(map[string][]byte{"0": {1}, "1": {1}, "2": {1}}, -1)
	var seen []error
	c := newQueueClient(d, func(int) {}, func(_ int, _ bool, err error) { seen = append(seen, err) })
	ctx, record := t.Context(), storage.SetOperation("qmv0", nil)
	require.NoError(t, c.Batch(ctx, record, storage.GetOperation("0")))
	d.fail = func(ops []*storage.Operation) error {
		if slices.ContainsFunc(ops, is(storage.Set)) || slices.ContainsFunc(ops, is(storage.Delete)) {
			return errors.New("full")
		}
		return nil
	}
	require.Error(t, c.Batch(ctx, record, storage.DeleteOperation("0")))
	require.Error(t, c.Batch(ctx, storage.DeleteOperation("0"))) // as the queue does then
	require.Error(t, c.Batch(ctx, record, storage.DeleteOperation("9")))
	assert.Equal(t, []string{"0"}, c.owed, "what is not there takes no room")
	require.Error(t, c.Batch(ctx, record, storage.SetOperation("3", []byte{1})))
	d.fail = nil
	require.NoError(t, c.Batch(ctx, record, storage.SetOperation("4", []byte{1})))
	assert.Empty(t, c.owed)
	left := d.kill()
	assert.NotContains(t, left, "0")
	for _, key := range []string{"1", "2", "4"} {
		assert.Contains(t, left, key)
	}
	require.NotEmpty(t, seen)
	require.NoError(t, seen[len(seen)-1])
	require.Error(t, seen[1])
}
