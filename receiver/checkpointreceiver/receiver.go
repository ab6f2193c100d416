// SPDX-License-Identifier: Apache-2.0

package checkpointreceiver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/ckptwatch"
	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/receiver/checkpointreceiver/internal/metadata"
)

// looker looks at all folders, each in its own time.
type looker struct {
	cfg       *Config
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	out       *deliver.Receiver
	next      *deliver.Sender[plog.Logs]
	disk      frwatch.Disk
	folders   []*folder
	health    health.Status

	//nolint:containedctx // the intervals' calls have no context of their own
	ctx    context.Context
	cancel context.CancelFunc
}

// folder is one root. Only its interval's goroutine uses it.
type folder struct {
	*looker
	cfg      *RootConfig
	watcher  *ckptwatch.Watcher
	interval *hub.Interval
	counted  ckptwatch.Stats
	said     string        // what its log line said last
	rest     time.Time     // until when it is left alone
	took     time.Duration // the last look
}

func newLooker(set receiver.Settings, cfg *Config, next consumer.Logs) (*looker, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create telemetry: %w", err)
	}
	node := cfg.Node
	if node == "" {
		if node, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("name this node: %w; set node", err)
		}
	}
	out, err := deliver.NewReceiver(set, deliver.ReceiverConfig{Transport: "file", Format: "checkpoint"})
	if err != nil {
		return nil, err
	}
	l := &looker{cfg: cfg, log: set.Logger, telemetry: telemetry, out: out}
	l.next = out.Logs(next, &deliver.Counts{
		What: "Observations of checkpoints", Again: true, LogEvery: deliver.RepeatEvery,
		Emitted: telemetry.ReceiverCheckpointObservationsEmitted.Add, Dropped: telemetry.ReceiverCheckpointObservationsDropped.Add,
	})
	l.ctx, l.cancel = context.WithCancel(context.Background())
	life := time.Now().UnixNano()
	for i := range cfg.Roots {
		r := &cfg.Roots[i]
		of := ckptwatch.Config{
			JobID: r.JobID, Observer: fmt.Sprintf("%s %s", node, r.Path), Life: life, World: r.WorldSize,
			Heartbeat: cfg.Heartbeat, MaxDomains: cfg.MaxDomains,
		}
		if r.Places > 0 {
			of.Where, of.Places = "of "+node, r.Places
		}
		f := &folder{looker: l, cfg: r, watcher: ckptwatch.New(of)}
		f.interval = hub.NewInterval(cfg.PollInterval, f.look)
		l.folders = append(l.folders, f)
	}
	return l, nil
}

// firstLook bounds how long a start waits for a file system that does not answer.
const firstLook = time.Second

// Start begins to look. Whether a folder can be read is known from here on, not only from the first look.
func (l *looker) Start(_ context.Context, host component.Host) error {
	l.health.Start(host)
	var all sync.WaitGroup
	for _, f := range l.folders {
		all.Go(func() {
			err, late := frwatch.Do(l.ctx, &l.disk, f.cfg.Path, firstLook, func() error { return health.Readable(f.cfg.Path) })
			l.health.Set(f.cfg.Path, cmp.Or(err, late))
		})
	}
	all.Wait()
	for _, f := range l.folders {
		f.interval.Start()
	}
	return nil
}

// Shutdown ends all looks. It does not wait for a file system that does not answer.
func (l *looker) Shutdown(ctx context.Context) error {
	_, stopped := l.out.Stop(ctx)
	l.cancel()
	for _, f := range l.folders {
		f.interval.Stop(func() {})
	}
	l.telemetry.Shutdown()
	return stopped()
}
