// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/lockstep-otel/lockstep/extension/queuestorageextension/internal/metadata"
	"github.com/lockstep-otel/lockstep/extension/queuestorageextension/internal/metadatatest"
)

// requests is how many are being sent when a process is killed.
const requests = 20

var (
	diskID  = component.MustNewID("disk")
	queueID = component.NewID(metadata.Type)
)

type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

// life is an exporter of the collector's own kind with a queue on a disk, from a start to a kill.
type life struct {
	exporter.Traces
	disk *disk
	mu   sync.Mutex
	sent map[string]int
}

// begin starts a life. Where nothing can be sent, all requests stay in the making of one batch.
func begin(t *testing.T, d *disk, telemetry *componenttest.Telemetry, sends bool) (*life, error) {
	t.Helper()
	set := extensiontest.NewNopSettings(metadata.Type)
	if telemetry != nil {
		set = metadatatest.NewSettings(telemetry)
	}
	extension, err := NewFactory().Create(t.Context(), set, &Config{Storage: &diskID})
	require.NoError(t, err)
	all := host{diskID: d, queueID: extension}
	require.NoError(t, extension.Start(t.Context(), all))
	t.Cleanup(func() { assert.NoError(t, extension.Shutdown(context.Background())) })

	l := &life{disk: d, sent: map[string]int{}}
	batch := exporterhelper.BatchConfig{Sizer: exporterhelper.RequestSizerTypeItems, FlushTimeout: time.Hour, MinSize: 1 << 20}
	if sends {
		batch.MinSize = 1
	}
	l.Traces, err = exporterhelper.NewTraces(t.Context(), exportertest.NewNopSettings(component.MustNewType("test")), &struct{}{},
		func(_ context.Context, td ptrace.Traces) error { return l.send(td, sends) },
		exporterhelper.WithRetry(configretry.NewDefaultBackOffConfig()),
		exporterhelper.WithQueue(configoptional.Some(exporterhelper.QueueBatchConfig{
			Sizer: exporterhelper.RequestSizerTypeItems, QueueSize: 1 << 20, NumConsumers: 10, StorageID: &queueID,
			Batch: configoptional.Some(batch),
		})))
	require.NoError(t, err)
	return l, l.Start(t.Context(), all)
}

// span returns data of one span.
func span(name string) ptrace.Traces {
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(name)
	return td
}

func (l *life) send(td ptrace.Traces, sends bool) error {
	if !sends {
		return errors.New("nobody there")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				l.sent[s.Name()]++
			}
		}
	}
	return nil
}

// kill ends the life and returns the values on its disk.
func (l *life) kill(t *testing.T) map[string][]byte {
	t.Helper()
	left := l.disk.kill()
	_ = l.Shutdown(t.Context()) // ends the rest of the process: nothing reaches the disk
	return left
}

func wait(t *testing.T, until func() bool, format string, args ...any) {
	t.Helper()
	require.Eventually(t, until, 10*time.Second, time.Millisecond, append([]any{format}, args...)...)
}

// sending returns the disk of a process that was killed while it sent all requests.
func sending(t *testing.T) map[string][]byte {
	t.Helper()
	l, err := begin(t, newDisk(map[string][]byte{}, -1), nil, false)
	require.NoError(t, err)
	before := l.disk.transactions()
	ctx := client.NewContext(t.Context(), client.Info{Metadata: senders()})
	for i := range requests {
		require.NoError(t, l.ConsumeTraces(ctx, span(strconv.Itoa(i))))
	}
	wait(t, func() bool { return l.disk.transactions() == before+2*requests }, "each is stored and read once")
	return l.kill(t)
}

// senders returns the metadata of the requests' clients. A queue stores it in another order each time.
func senders() client.Metadata {
	all := map[string][]string{}
	for i := range 8 {
		all[strconv.Itoa(i)] = []string{"x"}
	}
	return client.NewMetadata(all)
}

// A process is killed while it sends, and the next at each transaction of its start: the one after
// sends every request once.
func TestKill_AtEachTransactionOfAStart_LosesNothing(t *testing.T) {
	stored := sending(t)
	for at := range 3 * requests {
		second := newDisk(stored, at)
		l, err := begin(t, second, nil, false)
		if err == nil {
			wait(t, func() bool { return second.transactions() >= min(at, 2+2*requests) }, "kill %d", at)
		}
		left := l.kill(t)

		third := newDisk(left, -1)
		l, err = begin(t, third, nil, true)
		require.NoError(t, err)
		wait(t, func() bool { return third.keys() == 1 }, "all is sent, or lost")
		require.NoError(t, l.Shutdown(t.Context()))
		assert.Len(t, l.sent, requests, "killed after transaction %d of the start", at)
		for name, n := range l.sent {
			assert.Equal(t, 1, n, "request %s, killed after transaction %d of the start", name, at)
		}
	}
}

// What cannot be stored again is counted.
func TestStart_StorageRefuses_CountsWhatIsLost(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	d := newDisk(sending(t), -1)
	refused := 0
	d.fail = func(ops []*storage.Operation) error {
		if len(ops) == 3 && refused < 5 { // the record, the request, and what it was
			refused++
			return errors.New("full")
		}
		return nil
	}
	l, err := begin(t, d, telemetry, true)
	require.NoError(t, err)
	wait(t, func() bool { return d.keys() == 1 }, "the rest is sent")
	require.NoError(t, l.Shutdown(t.Context()))
	assert.Len(t, l.sent, requests-refused)
	assert.Equal(t, 5, refused)
	metadatatest.AssertEqualExtensionQueueStorageRequestsLost(t, telemetry, []metricdata.DataPoint[int64]{{Value: 5}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

// A queue drops a request whose reading cannot be recorded, on a disk that is full, and counts nothing.
func TestRead_StorageRefusesTheRecord_LosesNothing(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	d := newDisk(sending(t), -1)
	refused := 0
	d.fail = func(ops []*storage.Operation) error {
		if slices.ContainsFunc(ops, is(storage.Get)) && slices.ContainsFunc(ops, is(storage.Set)) && refused < 5 {
			refused++
			return errors.New("full")
		}
		return nil
	}
	l, err := begin(t, d, telemetry, true)
	require.NoError(t, err)
	wait(t, func() bool { return d.keys() == 1 }, "all is sent, or lost")
	require.NoError(t, l.Shutdown(t.Context()))
	assert.Len(t, l.sent, requests)
	assert.Equal(t, 5, refused)
	_, err = telemetry.GetMetric("otelcol_extension_queue_storage_requests_lost")
	require.Error(t, err, "none is lost")
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

// A queue that an older collector left is taken over: its record is no request.
func TestStart_OlderRecord_IsNoLostRequest(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	d := newDisk(map[string][]byte{"ri": make([]byte, 8), "wi": make([]byte, 8), "di": make([]byte, 4)}, -1)
	l, err := begin(t, d, telemetry, true)
	require.NoError(t, err)
	assert.Equal(t, 1, d.keys(), "the new record")
	require.NoError(t, l.ConsumeTraces(t.Context(), span("a")))
	wait(t, func() bool { return d.keys() == 1 && d.transactions() > 4 }, "it is sent")
	require.NoError(t, l.Shutdown(t.Context()))
	assert.Equal(t, map[string]int{"a": 1}, l.sent)
	_, err = telemetry.GetMetric("otelcol_extension_queue_storage_requests_lost")
	require.Error(t, err, "none is lost")
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

// A request that the queue cannot read is counted, and takes no other with it.
func TestStart_UnreadableRequest_IsCounted(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	stored := sending(t)
	require.Contains(t, stored, "0")
	stored["0"] = []byte("no request")
	d := newDisk(stored, -1)
	l, err := begin(t, d, telemetry, true)
	require.NoError(t, err)
	wait(t, func() bool { return d.keys() == 1 }, "the rest is sent")
	require.NoError(t, l.Shutdown(t.Context()))
	assert.Len(t, l.sent, requests-1)
	metadatatest.AssertEqualExtensionQueueStorageRequestsLost(t, telemetry, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

// A failure while the queue cleans up hides no loss: the request that could not be stored again is counted.
func TestStart_CleanupFails_CountsWhatIsLost(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	stored := sending(t)
	require.Contains(t, stored, "0")
	stored["0"] = []byte("no request")
	d := newDisk(stored, -1)
	gets := 0
	d.fail = func(ops []*storage.Operation) error {
		if len(ops) == requests && consists(ops, is(storage.Get)) {
			if gets++; gets == 2 { // the first is of the queue
				return errors.New("busy")
			}
		}
		return nil
	}
	l, err := begin(t, d, telemetry, true)
	require.NoError(t, err)
	wait(t, func() bool { return d.keys() == 1 }, "the rest is sent, and nothing is left")
	require.NoError(t, l.Shutdown(t.Context()))
	assert.Len(t, l.sent, requests-1)
	metadatatest.AssertEqualExtensionQueueStorageRequestsLost(t, telemetry, []metricdata.DataPoint[int64]{{Value: 1}}, metricdatatest.IgnoreTimestamp())
	require.NoError(t, telemetry.Shutdown(t.Context()))
}

func TestStart_NoStorage_SaysWhatIsWanted(t *testing.T) {
	extension, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), &Config{Storage: &diskID})
	require.NoError(t, err)
	assert.EqualError(t, extension.Start(t.Context(), host{}),
		`find storage: got no storage extension "disk"; want one, such as file_storage, that is listed under service::extensions`)
}

func TestGetClient_StorageFails_NamesComponentAndRemedy(t *testing.T) {
	extension, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), &Config{Storage: &diskID})
	require.NoError(t, err)
	d := newDisk(nil, -1)
	d.open = errors.New("timeout")
	require.NoError(t, extension.Start(t.Context(), host{diskID: d}))
	t.Cleanup(func() { assert.NoError(t, extension.Shutdown(context.Background())) })
	_, err = extension.(storage.Extension).GetClient(t.Context(), component.KindExporter, component.MustNewID("otlp"), "logs")
	assert.EqualError(t, err, "open storage of otlp for logs: timeout: another process may hold its file, such as a second collector "+
		"(fuser names it); stop that process, or give this collector a directory of its own")
}

// Of a component that is no exporter, which reads as it likes, nothing is held back.
func TestGetClient_NoExporter_DeletesAtOnce(t *testing.T) {
	extension, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), &Config{Storage: &diskID})
	require.NoError(t, err)
	d := newDisk(map[string][]byte{"a": nil, "b": {1}}, -1)
	require.NoError(t, extension.Start(t.Context(), host{diskID: d}))
	t.Cleanup(func() { assert.NoError(t, extension.Shutdown(context.Background())) })
	client, err := extension.(storage.Extension).GetClient(t.Context(), component.KindReceiver, component.MustNewID("test"), "")
	require.NoError(t, err)
	require.NoError(t, client.Batch(t.Context(), storage.DeleteOperation("a"), storage.DeleteOperation("b")))
	assert.Zero(t, d.keys())
}
