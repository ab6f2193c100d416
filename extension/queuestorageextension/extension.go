// SPDX-License-Identifier: Apache-2.0

package queuestorageextension

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/extension/queuestorageextension/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
)

// queueStorage gives exporters a client of their own for each queue.
type queueStorage struct {
	config    *Config
	set       extension.Settings
	telemetry *metadata.TelemetryBuilder
	storage   storage.Extension
	faults    *faults
	looking   *hub.Interval
}

var (
	_ storage.Extension               = (*queueStorage)(nil)
	_ extensioncapabilities.Dependent = (*queueStorage)(nil)
)

// Dependencies implements extensioncapabilities.Dependent: the storage starts first and ends last.
func (q *queueStorage) Dependencies() []component.ID { return []component.ID{*q.config.Storage} }

// Start implements component.Component.
func (q *queueStorage) Start(_ context.Context, host component.Host) error {
	found, ok := host.GetExtensions()[*q.config.Storage].(storage.Extension)
	if !ok {
		return fmt.Errorf("find storage: got no storage extension %q; want one, such as file_storage, that is listed under service::extensions", q.config.Storage)
	}
	q.storage = found
	q.faults.status.Start(host)
	q.looking.Start()
	return nil
}

// Shutdown implements component.Component.
func (q *queueStorage) Shutdown(context.Context) error {
	q.looking.Stop(func() {})
	return nil
}

// GetClient implements storage.Extension. Only exporters have queues: other components get the
// client of the storage.
func (q *queueStorage) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	client, err := q.storage.GetClient(ctx, kind, id, name)
	if err != nil {
		return nil, hub.StorageError(id.String()+" for "+name, err)
	}
	if kind != component.KindExporter {
		return client, nil
	}
	of := id.String() + " for " + name
	wrote := func(bytes int, request bool, err error) { q.faults.wrote(of, bytes, request, err, time.Now()) }
	queue := newQueueClient(client, func(n int) {
		q.telemetry.ExtensionQueueStorageRequestsLost.Add(context.WithoutCancel(ctx), int64(n))
		q.set.Logger.Error("Requests that were queued cannot be read or queued again, and are lost", zap.Stringer("component", id), zap.String("signal", name), zap.Int("requests", n))
	}, wrote)
	if err := queue.findNewest(ctx); err != nil {
		q.set.Logger.Warn("Queued requests cannot be listed: if the queue cannot read its record, those that it loses are not counted",
			zap.Stringer("component", id), zap.Error(err))
	}
	return queue, nil
}
