// SPDX-License-Identifier: Apache-2.0

package epochconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	kit "github.com/lockstep-otel/lockstep/internal/component/hub"
)

// restore takes what the run before kept.
func (h *hub) restore(ctx context.Context, host component.Host) (err error) {
	at := kit.Storage{Extension: h.cfg.StorageID, Kind: component.KindConnector, Component: h.id}
	h.kept, err = kit.OpenStates(ctx, host, at, &h.watching, map[string]kit.State{
		"saves": h.watch, "fleet": h.fleet, "resume": h.resume, "replicas": h.replicas, "log_lines": h.lines,
	}, h.storageFailed)
	return err
}

func (h *hub) storageFailed(err error) {
	h.telemetry.ConnectorEpochStorageFailures.Add(context.Background(), 1)
	h.logger.Warn("Storage of findings fails", zap.Error(err))
}
