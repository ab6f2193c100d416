// SPDX-License-Identifier: Apache-2.0

package rankeventsreceiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/receiver/rankeventsreceiver/internal/metadata"
)

// The directory is listed, and rings are compared with what their names lead to,
// as often as it costs a hundredth of the time, within limits: a rank that starts
// is to be seen within a few steps. A directory full of junk must not take a core,
// so that a long look is followed by a pause that makes it a twentieth of the time.
const (
	lookShare = 100
	minLook   = 200 * time.Millisecond
	maxLook   = time.Second

	longLookShare = 20
	maxLongLook   = time.Minute
)

// pauseAfter is how long nothing is looked for after a look that took so long.
func pauseAfter(look time.Duration) time.Duration {
	return max(min(max(lookShare*look, minLook), maxLook), min(longLookShare*look, maxLongLook))
}

// reader finds rings, folds them and hands on what comes of it. One goroutine,
// the interval's, uses all but the consumers' fields, which are set before.
type reader struct {
	cfg       *Config
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	out       *deliver.Receiver
	traces    *deliver.Sender[ptrace.Traces] // nil where no pipeline takes them
	logs      *deliver.Sender[plog.Logs]

	id       component.ID
	starting sync.Once
	startErr error
	store    *store // nil keeps no positions
	left     bool   // something of the batch at hand is left to the next reader

	interval *hub.Interval
	//nolint:containedctx // the interval's calls have no context of their own
	ctx    context.Context
	cancel context.CancelFunc

	node     *rankevents.Node
	rings    map[string]*tracked
	overflow [3]int64 // of the node, as counted last: communicators, links, boots
	refused  refusals
	health   health.Status
	read     bool // a ring was read since the start
	lookNext time.Time
	waiting  bool // said that there is no directory
	stopping bool // what is refused now is not offered again
	// finishing is what replaced rings took of a look: to hand on what they still held.
	finishing time.Duration
}

func newReader(set receiver.Settings, cfg *Config) (*reader, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create telemetry: %w", err)
	}
	out, err := deliver.NewReceiver(set, deliver.ReceiverConfig{
		Transport: "shared_memory", Format: "lockstep_ring", Retry: cfg.RetryOnFailure, Retried: telemetry.ReceiverRankEventsDeliveryRetries.Add,
	})
	if err != nil {
		return nil, err
	}
	rd := &reader{
		cfg: cfg, id: set.ID, log: set.Logger, telemetry: telemetry, out: out,
		node: rankevents.NewNode(cfg.engine()), rings: map[string]*tracked{}, refused: newRefusals(),
	}
	rd.ctx, rd.cancel = context.WithCancel(context.Background())
	rd.interval = hub.NewInterval(cfg.PollInterval, rd.poll)
	return rd, nil
}

// start opens the storage and begins to read, once for all signals.
func (rd *reader) start(ctx context.Context, host component.Host) error {
	rd.starting.Do(func() {
		if rd.store, rd.startErr = openStore(ctx, host, rd.cfg.StorageID, rd.id); rd.startErr != nil {
			return
		}
		if rd.store != nil {
			if err := rd.store.load(ctx); err != nil {
				rd.telemetry.ReceiverRankEventsStorageErrors.Add(ctx, 1)
				rd.log.Warn("Kept positions are of no use: all that rings hold is read, again where it was read before", zap.Error(err))
			}
		}
		rd.health.Start(host)
		rd.health.Set(rd.cfg.Directory, health.Readable(rd.cfg.Directory))
		rd.interval.Start()
	})
	return rd.startErr
}

// stop ends the reading: what is refused now is not offered again.
func (rd *reader) stop(ctx context.Context) error {
	ctx, stopped := rd.out.Stop(ctx)
	rd.cancel()
	rd.interval.Stop(func() {
		rd.ctx, rd.stopping = ctx, true
		for _, t := range rd.rings {
			t.stop(rd)
		}
		rd.save()
		for _, t := range rd.rings {
			t.close(rd)
		}
		if rd.store != nil {
			if err := rd.store.client.Close(ctx); err != nil {
				rd.log.Warn("Storage could not be closed", zap.Error(err))
			}
		}
		rd.telemetry.Shutdown()
	})
	return stopped()
}

// poll reads every ring once.
func (rd *reader) poll(now time.Time) {
	look := !now.Before(rd.lookNext)
	if look {
		began := time.Now()
		rd.look()
		took := time.Since(began) - rd.finishing
		rd.finishing = 0
		rd.lookNext = now.Add(took + pauseAfter(took))
	}
	for path, t := range rd.rings {
		if rd.ctx.Err() != nil {
			return
		}
		if t.done {
			rd.maybeRemove(path, t, now)
			continue
		}
		t.read(rd, now)
	}
	if look {
		rd.measure()
	}
	rd.keep(now)
}

// look opens rings that are new and lets go of files that are gone.
func (rd *reader) look() {
	paths, refused := ring.Discover(rd.cfg.Directory, ring.Options{})
	rd.refused.denied = 0
	for _, err := range refused {
		rd.refuse(err)
	}
	if len(refused) == 0 {
		rd.waiting = false
	}
	found := make(map[string]bool, len(paths))
	for _, path := range paths {
		found[path] = true
		rd.open(path)
	}
	rd.health.Set(rd.cfg.Directory, cmp.Or(rd.unreadable(refused), rd.nothingReadable()))
	rd.tellRefusals()
	for path, t := range rd.rings {
		if t.done && !found[path] {
			t.close(rd)
			delete(rd.rings, path)
		}
	}
	rd.forgetGone()
}

// unreadable is why the directory itself is not read.
func (rd *reader) unreadable(refused []error) error {
	for _, err := range refused {
		if bad := (*ring.Error)(nil); errors.As(err, &bad) && bad.Path == rd.cfg.Directory {
			if bad.Err != nil {
				return health.Explain(bad.Path, bad.Err)
			}
			return err
		}
	}
	return nil
}

// nothingReadable is why no ring was read since the start, where every file in the directory is refused
// for its owner or its permissions. Files that are refused for their content say nothing of that.
func (rd *reader) nothingReadable() error {
	if rd.read || rd.refused.denied == 0 || rd.refused.denied < rd.refused.total() {
		return nil
	}
	return fmt.Errorf("read rings in %s: all %d are refused for their owner or their permissions; "+
		"run the collector as the user of the job, or give both a common group", rd.cfg.Directory, rd.refused.denied)
}

func (rd *reader) open(path string) {
	if t := rd.rings[path]; t != nil {
		if !t.replaced() {
			return
		}
		if !t.done {
			began := time.Now()
			t.finish(rd, false)
			rd.save(t)
			rd.finishing += time.Since(began)
			rd.node.Detach(t.rank)
		}
		t.close(rd)
		delete(rd.rings, path)
		rd.log.Info("Ring replaced", zap.String("file", path))
	}
	now, junk := rd.refused.unchanged(path)
	if junk {
		return
	}
	if rd.opened() >= rd.cfg.MaxRings {
		rd.refuse(&ring.Error{Path: path, Field: "max_rings", Got: strconv.Itoa(rd.opened() + 1), Want: fmt.Sprintf("at most %d", rd.cfg.MaxRings)})
		return
	}
	opened, err := ring.Open(path, ring.Options{DeadAfter: rd.cfg.deadAfter})
	if err != nil {
		rd.refuseFile(err, now)
		return
	}
	rd.read = true
	t := newTracked(path, opened, rd.node.Attach(opened, filepath.Base(rd.cfg.Directory)))
	rd.rings[path] = t
	h := opened.Header()
	if rd.takeUp(t, &h) {
		rd.node.Detach(t.rank)
		t.close(rd)
		t.rank, t.done, t.endedAt = nil, true, time.Now()
		return
	}
	rd.log.Info("Ring opened", zap.String("file", path), zap.Uint64("pid", h.PID), zap.Int32("rank", h.Rank), zap.String("producer", h.Producer))
	rd.warnOfNamesake(t, &h)
	if level, ok := rd.cfg.record(); ok {
		err := opened.SetLevel(level)
		if err != nil {
			rd.log.Warn("Ring keeps its level of detail", zap.String("file", path), zap.Error(err))
		}
		t.leveled = err == nil
	}
}

// warnOfNamesake tells of two living processes that say that they are one rank of
// one job: their operations are laid on top of each other.
func (rd *reader) warnOfNamesake(t *tracked, h *ring.Header) {
	if h.Rank == ring.None || h.JobID == "" {
		return
	}
	for path, other := range rd.rings {
		o := other.ring.Header()
		if other == t || other.done || o.Rank != h.Rank || o.JobID != h.JobID || o.HostName != h.HostName {
			continue
		}
		if alive, _, err := other.ring.Alive(); err == nil && alive {
			rd.log.Warn("Two processes say that they are one rank: check RANK and LOCKSTEP_RANK",
				zap.Int32("rank", h.Rank), zap.String("job", h.JobID), zap.String("file", t.path), zap.String("other", path))
			return
		}
	}
}

// opened is how many rings are being read. Those that ended are remembered as long
// as their file is there, and of these ring.Discover lists 4,096 at most.
func (rd *reader) opened() (n int) {
	for _, t := range rd.rings {
		if !t.done {
			n++
		}
	}
	return n
}

func reason(r string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", r)))
}
