// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/lockstep-otel/lockstep/extension/queuestorageextension/internal/metadatatest"
)

// A queue begins again at its first key where its record is damaged or gone: what was queued is lost.
func TestStart_UnreadableRecord_CountsAllRequestsOnce(t *testing.T) {
	for name, spoil := range map[string]func(map[string][]byte){
		"damaged": func(d map[string][]byte) { d[recordKey(t, d)] = []byte{0xff} },
		"gone":    func(d map[string][]byte) { delete(d, recordKey(t, d)) },
		"older": func(d map[string][]byte) {
			delete(d, recordKey(t, d))
			d["ri"], d["wi"] = []byte{1}, []byte{1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			telemetry := componenttest.NewTelemetry()
			stored := sending(t)
			spoil(stored)
			for _, lost := range []int64{requests, requests} { // the next start counts none again
				d := newDisk(stored, -1)
				l, err := begin(t, d, telemetry, true)
				require.NoError(t, err)
				before := d.transactions()
				require.NoError(t, l.ConsumeTraces(t.Context(), span("a")))
				wait(t, func() bool { return d.keys() == 1 && d.transactions() >= before+3 }, "it is sent, and nothing else is left")
				stored = l.kill(t)
				assert.Equal(t, map[string]int{"a": 1}, l.sent)
				metadatatest.AssertEqualExtensionQueueStorageRequestsLost(t, telemetry, []metricdata.DataPoint[int64]{{Value: lost}}, metricdatatest.IgnoreTimestamp())
			}
			require.NoError(t, telemetry.Shutdown(t.Context()))
		})
	}
}

// record returns the queue's own record of requests that wait to be read; it sends none of them.
func record(read, write uint64) []byte {
	r := append([]byte{3<<3 | 1}, binary.LittleEndian.AppendUint64(nil, read)...)
	return binary.LittleEndian.AppendUint64(append(r, 4<<3|1), write)
}

// A queue that began again at its first key leaves requests behind the last one. Those that wait are not lost.
func TestStart_KeyBehindTheLast_LosesNoWaitingRequest(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	stored := sending(t)
	stored[recordKey(t, stored)] = record(0, requests)
	stored["5000"] = stored["0"]
	d := newDisk(stored, -1)
	l, err := begin(t, d, telemetry, false)
	require.NoError(t, err)
	require.NoError(t, l.ConsumeTraces(t.Context(), span("new")))
	left := l.kill(t)

	d = newDisk(left, -1)
	l, err = begin(t, d, telemetry, true)
	require.NoError(t, err)
	wait(t, func() bool { return d.keys() == 1 }, "all is sent, or lost")
	require.NoError(t, l.Shutdown(t.Context()))
	assert.Len(t, l.sent, requests+1)
	metadatatest.AssertEqualExtensionQueueStorageRequestsLost(t, telemetry, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

// While the disk stores nothing, the record may become readable again: nothing is deleted.
func TestStart_UnreadableRecordOfFullDisk_DeletesNothing(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	stored := sending(t)
	stored[recordKey(t, stored)] = []byte{0xff}
	d := newDisk(stored, -1)
	d.fail = func(ops []*storage.Operation) error {
		if slices.ContainsFunc(ops, is(storage.Set)) {
			return errors.New("full")
		}
		return nil
	}
	l, err := begin(t, d, telemetry, true)
	require.NoError(t, err)
	require.Error(t, l.ConsumeTraces(t.Context(), span("a")))
	assert.Len(t, l.kill(t), requests+1, "with the record")
	_, err = telemetry.GetMetric("otelcol_extension_queue_storage_requests_lost")
	require.Error(t, err, "none is lost")
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

// A request is stored even while the keys cannot be listed.
func TestStart_ListingFails_StoresTheRequest(t *testing.T) {
	stored := sending(t)
	stored["5000"] = stored["0"]
	d := newDisk(stored, -1)
	walks := 0
	d.walk = func() error {
		if walks++; walks > 1 { // the first is of the start
			return errors.New("busy")
		}
		return nil
	}
	l, err := begin(t, d, nil, true)
	require.NoError(t, err)
	wait(t, func() bool { return d.keys() == 2 }, "all is sent, or lost")
	require.NoError(t, l.Shutdown(t.Context()))
	assert.Len(t, l.sent, requests)
	assert.Greater(t, walks, 1)
}

// olderRecord replaces the record by an older one: its indexes are unreadable, its list of what is being sent is not.
func olderRecord(t *testing.T, stored map[string][]byte, keys []uint64) {
	t.Helper()
	delete(stored, recordKey(t, stored))
	stored["ri"], stored["wi"] = []byte{1}, []byte{1}
	list := binary.LittleEndian.AppendUint32(nil, uint32(len(keys)))
	for _, key := range keys {
		list = binary.LittleEndian.AppendUint64(list, key)
	}
	stored["di"] = list
}

// The queue stores what was being sent at its first keys again, which are those of other such requests.
func TestStart_UnreadableIndexOfOlderRecord_SendsWhatWasBeingSent(t *testing.T) {
	keys := make([]uint64, requests)
	for i := range keys {
		keys[i] = uint64(i)
	}
	turned := slices.Clone(keys)
	slices.Reverse(turned)
	for name, tt := range map[string]struct {
		keys    []uint64
		damaged string // key of a request
		lost    int
	}{
		"ascending":             {keys: keys},
		"descending":            {keys: turned},
		"with a damaged one":    {keys: keys, damaged: "0", lost: 1},
		"and others that wait":  {keys: keys[5:], lost: 5},
		"descending with both":  {keys: turned[:15], damaged: "7", lost: 6},
		"ascending with a hole": {keys: slices.Concat(keys[:3], keys[4:]), lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			telemetry := componenttest.NewTelemetry()
			stored := sending(t)
			olderRecord(t, stored, tt.keys)
			if tt.damaged != "" {
				stored[tt.damaged] = []byte("no request")
			}
			d := newDisk(stored, -1)
			l, err := begin(t, d, telemetry, true)
			require.NoError(t, err)
			wait(t, func() bool { return d.keys() == 1 }, "all is sent, or lost")
			require.NoError(t, l.Shutdown(t.Context()))
			assert.Len(t, l.sent, requests-tt.lost)
			lost, err := telemetry.GetMetric("otelcol_extension_queue_storage_requests_lost")
			if tt.lost == 0 {
				require.Error(t, err, "none is lost")
			} else {
				require.NoError(t, err)
				assert.EqualValues(t, tt.lost, lost.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
			}
			require.NoError(t, telemetry.Shutdown(t.Context()))
		})
	}
}

// A key that was to be deleted, and has a new request, stays.
func TestRead_KeyIsStoredAgain_IsNotDeleted(t *testing.T) {
	d := newDisk(map[string][]byte{"0": {1}, "7": {1}}, -1)
	c := newQueueClient(d, func(int) {}, func(int, bool, error) {})
	ctx := t.Context()
	require.NoError(t, c.Batch(ctx, storage.DeleteOperation("0"))) // held
	record := storage.SetOperation("qmv0", nil)
	d.fail = func(ops []*storage.Operation) error {
		if slices.ContainsFunc(ops, is(storage.Set)) {
			return errors.New("full")
		}
		return nil
	}
	require.NoError(t, c.Batch(ctx, record, storage.GetOperation("7")), "it is read alone")
	d.fail = nil
	require.NoError(t, c.Batch(ctx, record, storage.SetOperation("0", []byte{2})))
	require.NoError(t, c.Batch(ctx, record, storage.GetOperation("7")))
	assert.Equal(t, []byte{2}, d.kill()["0"])
}

// The request that the queue reads is not deleted by it, as after a store that failed.
func TestRead_KeyWasToBeDeleted_Stays(t *testing.T) {
	d := newDisk(map[string][]byte{"0": {1}}, -1)
	c := newQueueClient(d, func(n int) { assert.Zero(t, n) }, func(int, bool, error) {})
	require.NoError(t, c.Batch(t.Context(), storage.DeleteOperation("0"))) // held
	got := storage.GetOperation("0")
	require.NoError(t, c.Batch(t.Context(), storage.SetOperation("qmv0", nil), got))
	assert.Equal(t, []byte{1}, got.Value)
	assert.Contains(t, d.kill(), "0")
}

// recordKey returns the key of the queue's own record: the only one that is no number.
func recordKey(t *testing.T, values map[string][]byte) string {
	t.Helper()
	for key := range values {
		if _, err := strconv.ParseUint(key, 10, 64); err != nil {
			return key
		}
	}
	t.Fatal("no record")
	return ""
}
