// SPDX-License-Identifier: Apache-2.0

package fleetversionreceiver

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/fleet"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/hostid"
	"github.com/lockstep-otel/lockstep/receiver/fleetversionreceiver/internal/metadata"
)

// looker looks at one node.
type looker struct {
	cfg       *Config
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	out       *deliver.Receiver
	next      *deliver.Sender[plog.Logs]
	interval  *hub.Interval
	host      hostid.Host
	health    health.Status

	//nolint:containedctx // the interval's calls have no context of their own
	ctx    context.Context
	cancel context.CancelFunc

	// What follows is the interval's.
	calls  frwatch.Disk
	teller *fleet.Teller
	all    time.Time // when everything was looked at last
	driver string    // that was loaded when it was
	said   string    // what the log line of problems said last
}

func newLooker(set receiver.Settings, cfg *Config, next consumer.Logs) (*looker, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create telemetry: %w", err)
	}
	host, err := hostid.Find(cfg.HostID)
	if err != nil {
		return nil, err
	}
	if cfg.Node != "" {
		host.Name = cfg.Node
	}
	out, err := deliver.NewReceiver(set, deliver.ReceiverConfig{Transport: "file", Format: "fleet_version"})
	if err != nil {
		return nil, err
	}
	l := &looker{cfg: cfg, log: set.Logger, telemetry: telemetry, out: out, host: host, teller: fleet.NewTeller(host.Name, host.ID, time.Now())}
	l.next = out.Logs(next, &deliver.Counts{
		What: "Versions of this node", Again: true, LogEvery: deliver.RepeatEvery,
		Emitted: telemetry.ReceiverFleetVersionFactsEmitted.Add, Dropped: telemetry.ReceiverFleetVersionFactsDropped.Add,
	})
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.interval = hub.NewInterval(cfg.PollInterval, l.look)
	return l, nil
}

// Start begins to look.
func (l *looker) Start(_ context.Context, host component.Host) error {
	l.health.Start(host)
	l.health.Set(l.cfg.RootPath, health.Readable(l.cfg.RootPath))
	l.interval.Start()
	return nil
}

// Shutdown ends all looks. It does not wait for a program or a driver that hangs.
func (l *looker) Shutdown(ctx context.Context) error {
	_, stopped := l.out.Stop(ctx)
	l.cancel()
	l.interval.Stop(l.telemetry.Shutdown)
	return stopped()
}
