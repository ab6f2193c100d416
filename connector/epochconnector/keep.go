// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/keep"
)

const keptKey = "saves"

// restore takes what the run before kept. A value that cannot be used costs that, and
// is counted. The next save would replace one that the storage does not give: then there is no start.
func (h *hub) restore(ctx context.Context, host component.Host) error {
	client, err := keep.Open(ctx, host, h.cfg.StorageID, component.KindConnector, h.id)
	if err != nil || client == nil {
		return err
	}
	kept := keep.NewValue(client, keptKey)
	data, err := kept.Load(ctx)
	if err != nil && !errors.Is(err, keep.ErrTooLarge) {
		return errors.Join(err, kept.Close(ctx))
	}
	h.kept = kept
	if err == nil && data != nil {
		h.watching.Lock()
		defer h.watching.Unlock()
		err = h.watch.Restore(data, time.Now())
	}
	if err != nil {
		h.telemetry.ConnectorEpochStorageFailures.Add(ctx, 1)
		h.logger.Warn("start without what was known of saves before", zap.Error(err))
	}
	return nil
}

// save keeps what nobody would tell again, where that has changed.
func (h *hub) save(ctx context.Context) {
	if h.kept == nil {
		return
	}
	h.watching.Lock()
	data, err := h.watch.Snapshot()
	h.watching.Unlock()
	if err == nil && !bytes.Equal(data, h.saved) {
		if err = h.kept.Save(ctx, data); err == nil {
			h.saved = data
		}
	}
	if err != nil {
		h.telemetry.ConnectorEpochStorageFailures.Add(ctx, 1)
		h.logger.Warn("keep what is known of saves", zap.Error(err))
	}
}

// leave keeps what is known at the end, and gives the storage back.
func (h *hub) leave(ctx context.Context) error {
	if h.kept == nil {
		return nil
	}
	h.save(ctx)
	return h.kept.Close(ctx)
}
