// SPDX-License-Identifier: Apache-2.0

package epochcommitreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/component/web"
	"github.com/lockstep-otel/lockstep/internal/epoch/bilateral"
	"github.com/lockstep-otel/lockstep/receiver/epochcommitreceiver/internal/metadata"
)

// carrier carries what domains tell to one another.
type carrier struct {
	cfg       *Config
	set       receiver.Settings
	telemetry *metadata.TelemetryBuilder
	out       *deliver.Receiver
	next      *deliver.Sender[plog.Logs]
	board     *bilateral.Board
	interval  *hub.Interval
	observer  string
	life      int64

	server   *http.Server
	peers    *web.Peers
	grace    time.Duration
	finished chan struct{} // closed when the server has ended; nil: it never began
	waiting  atomic.Int64  // messages that wait for their answers

	// What follows is the interval's.
	pending []bilateral.Change // of one job, that were refused
	told    time.Time          // when all was told last
	last    bool               // what is refused now is not reported again

	//nolint:containedctx // the calls of the interval and of the server have none that ends with the receiver
	ctx    context.Context
	cancel context.CancelFunc
}

func newCarrier(set receiver.Settings, cfg *Config, next consumer.Logs) (*carrier, error) {
	node := cfg.Node
	if node == "" {
		var err error
		if node, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("name this node: %w; set node", err)
		}
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create telemetry: %w", err)
	}
	out, err := deliver.NewReceiver(set, deliver.ReceiverConfig{Transport: "http", Format: "epoch_commit"})
	if err != nil {
		return nil, err
	}
	c := &carrier{
		cfg: cfg, set: set, telemetry: telemetry, out: out,
		board: bilateral.New(cfg.board()), peers: web.NewPeers(cfg.limits()),
		observer: fmt.Sprintf("%s %s", node, set.ID), life: time.Now().UnixNano(), grace: grace,
	}
	c.next = out.Logs(next, &deliver.Counts{
		What: "Observations of commits", Keeps: c.keeps, LogEvery: deliver.RepeatEvery,
		Emitted: telemetry.ReceiverEpochCommitObservationsEmitted.Add, Dropped: telemetry.ReceiverEpochCommitObservationsDropped.Add,
	})
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.interval = hub.NewInterval(cfg.Interval, c.tick)
	return c, c.observe()
}

// observe tells how much the board holds.
func (c *carrier) observe() error {
	return errors.Join(
		c.telemetry.RegisterReceiverEpochCommitDomainsCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(c.board.Stats().Domains))
			return nil
		}),
		c.telemetry.RegisterReceiverEpochCommitJobsCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(c.board.Stats().Jobs))
			return nil
		}),
		c.telemetry.RegisterReceiverEpochCommitJobsForgottenCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.board.Stats().Forgotten)
			return nil
		}),
		c.telemetry.RegisterReceiverEpochCommitDomainsReplacedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.board.Stats().Left)
			return nil
		}),
		c.telemetry.RegisterReceiverEpochCommitPeersRefusedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.peers.Refused())
			return nil
		}),
		c.telemetry.RegisterReceiverEpochCommitPeersUnauthenticatedCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.peers.Unauthenticated())
			return nil
		}),
	)
}

// Start begins to listen.
func (c *carrier) Start(ctx context.Context, host component.Host) error {
	var err error
	if c.server, err = web.NewServer(ctx, &c.cfg.ServerConfig, c.peers, host, c.set.TelemetrySettings, c.handler()); err != nil {
		return fmt.Errorf("create server of commits: %w", err)
	}
	listener, err := c.cfg.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("listen for commits: %w", err)
	}
	c.set.Logger.Info("Listen for commits of checkpoints", zap.Stringer("address", listener.Addr()))
	if !c.cfg.Auth.HasValue() && !local(listener.Addr()) {
		c.set.Logger.Warn("Whoever reaches this address can speak for a rank: set auth, with an extension such as bearertokenauth", zap.Stringer("address", listener.Addr()))
	}
	c.finished = make(chan struct{})
	go func() {
		defer close(c.finished)
		if err := c.server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(fmt.Errorf("serve commits: %w", err)))
		}
	}()
	c.interval.Start()
	return nil
}

// local reports whether only processes of this host reach an address.
func local(a net.Addr) bool {
	of, ok := a.(*net.TCPAddr)
	return !ok || of.IP.IsLoopback()
}

// Shutdown answers who waits, and tells what has changed since it told last.
func (c *carrier) Shutdown(ctx context.Context) error {
	ctx, stopped := c.out.Stop(ctx)
	c.cancel()
	var err error
	if c.finished != nil {
		err = c.stop(ctx)
		<-c.finished
	}
	c.interval.Stop(func() {
		c.last = true
		c.emit(ctx, false, time.Now())
		c.telemetry.ReceiverEpochCommitObservationsDropped.Add(ctx, 2*c.board.Stats().Unsaid) // room was made for others
		c.telemetry.Shutdown()
	})
	return errors.Join(err, stopped())
}

// grace is for how long answers that were begun may take at the end. All who wait are answered at once;
// what takes longer is a client that does not send what it announced.
const grace = 2 * time.Second

func (c *carrier) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.grace)
	defer cancel()
	if err := c.server.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(fmt.Errorf("stop server of commits: %w", err), c.server.Close())
	}
	if err := c.server.Close(); err != nil {
		return fmt.Errorf("close server of commits: %w", err)
	}
	return nil
}
