// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/flightrecorder"
	"github.com/lockstep-otel/lockstep/internal/frwatch"
	"github.com/lockstep-otel/lockstep/internal/hostid"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver/internal/metadata"
)

// dumpCollector reads the dumps of one configuration. One goroutine uses it, but for what is said to
// be shared.
type dumpCollector struct {
	cfg       *Config
	set       receiver.Settings
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	out       *delivery
	options   flightrecorder.Options
	readFile  func(path string, limit int64) ([]byte, error)
	host      hostid.Host
	health    health.Status

	disk      frwatch.Disk // shared with calls that have not come back
	finder    frwatch.Finder
	listed    []frwatch.Listing // of each pattern, at the last look
	tracker   frwatch.Tracker
	jobs      frwatch.Jobs
	incidents *frwatch.Incidents
	keeper    *frwatch.Keeper // nil keeps nothing
	newest    map[rankKey]frwatch.File
	noted     map[string]bool // problems of the last look, so that each is noted once
	recorded  recorded

	puller    *puller // nil where no server is asked
	pulls     *frwatch.Incidents
	failing   map[string]string // what was said last of servers that give nothing
	server    *server           // nil where none serves
	requests  requests          // shared
	requested atomic.Int64      // when dumps were asked for last, Unix ns

	cancel   context.CancelFunc // nil before begin
	finished chan struct{}
	stopping bool
}

// rankKey is one rank of one job.
type rankKey struct {
	job  string
	rank int64
}

func newCollector(set receiver.Settings, cfg *Config) (*dumpCollector, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("create telemetry: %w", err)
	}
	out, err := newDelivery(set, cfg, telemetry)
	if err != nil {
		return nil, err
	}
	name, err := cfg.nameFunc()
	if err != nil {
		return nil, err
	}
	ranks, err := frwatch.ParseRanks(cfg.Ranks)
	if err != nil {
		return nil, fmt.Errorf("read ranks: %w", err)
	}
	h := &dumpCollector{
		cfg: cfg, set: set, log: set.Logger, telemetry: telemetry, finished: make(chan struct{}), out: out,
		finder:  frwatch.Finder{Include: cfg.patterns(), Exclude: cfg.Exclude, Name: name, MaxFiles: cfg.MaxFiles},
		tracker: frwatch.Tracker{Settle: cfg.Settle, MaxAge: cfg.MaxAge},
		jobs:    frwatch.Jobs{ID: jobID(cfg), Window: cfg.Window},
		noted:   map[string]bool{},
	}
	h.readFile = frwatch.Read
	h.listed = make([]frwatch.Listing, len(h.finder.Include))
	h.options = flightrecorder.DefaultOptions()
	h.options.Stacks, h.options.Cache = cfg.Stacks, flightrecorder.NewCache()
	h.options.Limits.Pickle.Bytes = int(cfg.MaxFileBytes)
	h.recorded = newRecorded(cfg)
	incidents := h.incidentConfig()
	incidents.Ranks, incidents.AllRanks, incidents.Known = ranks, cfg.AllRanks, h.known
	h.incidents = frwatch.NewIncidents(incidents)
	if k := &cfg.Keep; k.Directory != "" {
		h.keeper = &frwatch.Keeper{Directory: k.Directory, MaxBytes: k.MaxBytes, MaxFiles: k.MaxFiles}
	}
	if h.puller, err = newPuller(cfg, h.options); err != nil {
		return nil, err
	}
	pulls := h.incidentConfig()
	pulls.AllRanks = cfg.AllRanks && len(h.finder.Include) == 0
	h.pulls, h.failing = frwatch.NewIncidents(pulls), map[string]string{}
	h.server = newServer(&cfg.Trigger, h.request)
	return h, nil
}

// jobID is the configured or the environment's; empty where folders say it.
func jobID(cfg *Config) string {
	if cfg.JobID != "" {
		return cfg.JobID
	}
	return os.Getenv(envJobID)
}

func (h *dumpCollector) incidentConfig() frwatch.IncidentConfig {
	return frwatch.IncidentConfig{
		Wait: h.cfg.Wait, MaxWait: h.cfg.MaxWait, Window: h.cfg.Window, WorldSize: h.cfg.WorldSize,
		MaxRanks: h.cfg.MaxFiles, MaxJobs: maxJobs,
	}
}

// begin starts to watch; calls after the first do nothing.
func (h *dumpCollector) begin(ctx context.Context, host component.Host) error {
	if h.cancel != nil {
		return nil
	}
	if h.cfg.Local {
		var err error
		if h.host, err = hostid.Find(h.cfg.HostID); err != nil {
			h.log.Warn("Dumps will not say which clock they were stamped by", zap.Error(err))
		}
	}
	h.health.Start(host)
	if err := h.server.start(ctx, host, h.set.TelemetrySettings); err != nil {
		return err
	}
	// The collector's context ends with the call, so watching has one of its own.
	run, cancel := context.WithCancel(context.Background())
	h.cancel = cancel
	h.out.ctx = run
	h.puller.start(run)
	go h.run(run)
	return nil
}

// end stops watching and hands on what waits; calls after the first do nothing.
func (h *dumpCollector) end(ctx context.Context) error {
	if h.stopping {
		return nil
	}
	h.stopping = true
	defer h.telemetry.Shutdown()
	if h.cancel == nil {
		return nil
	}
	last, stopped := h.out.Stop(ctx)
	err := h.server.stop(last)
	h.cancel()
	h.puller.stop()
	select {
	case <-h.finished:
	case <-ctx.Done():
		return errors.Join(err, stopped(), fmt.Errorf("stop reading dumps: %w", ctx.Err()))
	}
	h.out.ctx = last
	h.look(time.Now())
	h.tell(h.incidents.End(false), true)
	h.tell(h.pulls.End(false), false)
	h.out.sendMetrics(&h.recorded, time.Now())
	return errors.Join(err, stopped())
}

func (h *dumpCollector) run(ctx context.Context) {
	defer close(h.finished)
	ticker := time.NewTicker(h.cfg.PollInterval)
	defer ticker.Stop()
	h.poll(time.Now())
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			h.poll(now)
		case p := <-h.puller.results():
			h.pulled(p)
		}
	}
}

// poll looks once for files, and tells of incidents that are complete.
func (h *dumpCollector) poll(now time.Time) {
	h.look(now)
	h.tell(h.incidents.Due(time.Now()), true)
	h.out.sendMetrics(&h.recorded, now)
}

// tell hands on what is known of incidents. InFiles: their dumps are files of ours.
func (h *dumpCollector) tell(incidents []frwatch.Incident, inFiles bool) {
	for i := range incidents {
		in := &incidents[i]
		h.telemetry.ReceiverFlightRecorderIncidents.Add(h.out.ctx, 1)
		for _, r := range in.Refused {
			h.fail(r.Reason, r.Source, r.Rank, errors.New(r.What))
		}
		// Of a rank that is absent it is not known where it runs, unless it is expected here.
		absent := h.identity(in.Job, 0, inFiles && len(h.cfg.Ranks) > 0)
		h.out.incident(&absent, in)
		h.log.Info("Dumps of an incident read", zap.String("job", in.Job), zap.Time("began", in.Began),
			zap.Int("ranks", len(in.States)), zap.Int("absent", len(in.Absent)), zap.Int("refused", len(in.Refused)))
	}
	if len(incidents) > 0 {
		h.options.Cache = flightrecorder.NewCache() // the next may be another job's
	}
	for _, r := range append(h.incidents.TakeOverflow(), h.pulls.TakeOverflow()...) {
		h.fail(r.Reason, r.Source, r.Rank, errors.New(r.What))
	}
}

// fail counts and tells of a dump of which nothing is taken.
func (h *dumpCollector) fail(why, source string, rank int64, err error) {
	h.telemetry.ReceiverFlightRecorderDumpsFailed.Add(h.out.ctx, 1, reason(why))
	h.telemetry.ReceiverFlightRecorderProblems.Add(h.out.ctx, 1)
	h.log.Warn("Dump left out", zap.String("source", source), zap.Int64("rank", rank), zap.String("reason", why), zap.Error(err))
}

func reason(r string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", r)))
}
