// SPDX-License-Identifier: Apache-2.0

package parquetexporter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/exporter/parquetexporter/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/columns"
	"github.com/lockstep-otel/lockstep/internal/columns/spool"
	"github.com/lockstep-otel/lockstep/internal/component/health"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/thread"
)

// writer gives the operations of requests to a spool, which belongs to a thread of low priority.
type writer struct {
	config  *Config
	log     *zap.Logger
	meter   *metadata.TelemetryBuilder
	version string

	thread   *thread.Thread // nil: was not started
	spool    *spool.Spool
	interval *hub.Interval
	uploads  *uploader // nil: there is no store

	waiting atomic.Int64 // operations in memory
	status  health.Status
	blocked bool // the last tick could not write; it belongs to the interval
}

func newWriter(c *Config, set exporter.Settings) (*writer, error) {
	meter, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("make counters: %w", err)
	}
	return &writer{config: c, log: set.Logger, meter: meter, version: set.BuildInfo.Version}, nil
}

// start starts the thread, and opens the directory on it.
func (w *writer) start(ctx context.Context, host component.Host) error {
	w.status.Start(host)
	t, err := thread.Start(thread.Config{Nice: w.config.Nice, Cores: w.config.Cores})
	if err != nil {
		return err
	}
	if run := t.Do(ctx, func() { w.spool, err = spool.Open(w.spoolConfig(), w.events()) }); run != nil {
		err = run
	}
	if err == nil && w.config.S3 != nil {
		w.uploads, err = newUploader(w.config.S3, w.spool, w.log, w.meter)
	}
	if err == nil {
		err = w.observe(t)
	}
	if err != nil {
		if w.spool != nil {
			err = errors.Join(err, w.spool.Close(time.Now()))
		}
		t.Stop()
		return err
	}
	w.thread = t
	w.interval = hub.NewInterval(tickEvery, w.tick)
	w.interval.Start()
	if w.uploads != nil {
		w.uploads.start()
	}
	return nil
}

// tickEvery is how exactly flush_interval is kept.
const tickEvery = time.Second / 4

func (w *writer) spoolConfig() spool.Config {
	c := w.config
	return spool.Config{
		Directory: c.Directory, MaxBytes: c.MaxMegabytes << 20,
		MaxFileRows: c.File.MaxOperations, MaxFileBytes: c.File.MaxMegabytes << 20, MaxFileSteps: c.File.MaxSteps,
		MaxAge: c.FlushInterval, MaxMemory: c.BufferMegabytes << 20,
		Resolution: resolutions[c.TimeResolution], Producer: w.version, Uploads: c.S3 != nil,
	}
}

func (w *writer) events() spool.Events {
	ctx := context.Background()
	reason := func(r string) metric.MeasurementOption { return metric.WithAttributes(attribute.String("reason", r)) }
	return spool.Events{
		Written: func(operations, bytes int64) {
			w.meter.ExporterParquetOperations.Add(ctx, operations)
			w.meter.ExporterParquetBytes.Add(ctx, bytes)
			w.meter.ExporterParquetFiles.Add(ctx, 1)
			if w.uploads != nil {
				w.uploads.wake()
			}
		},
		Dropped: func(operations int64, why string) {
			w.meter.ExporterParquetDroppedSpans.Add(ctx, operations, reason(why))
			w.log.Error("Operations are lost", zap.Int64("operations", operations), zap.String("reason", why))
		},
		Deleted: func(why string) { w.meter.ExporterParquetDeletedFiles.Add(ctx, 1, reason(why)) },
		Cut:     func(texts int64) { w.meter.ExporterParquetCutTexts.Add(ctx, texts) },
	}
}

func (w *writer) observe(t *thread.Thread) error {
	err := w.meter.RegisterExporterParquetCPUTimeCallback(func(_ context.Context, o metric.Float64Observer) error {
		o.Observe(t.CPU().Seconds())
		return nil
	})
	return errors.Join(err, hub.Observe(
		hub.Counter{Register: w.meter.RegisterExporterParquetRingSizeCallback, Value: w.spool.Bytes},
		hub.Counter{Register: w.meter.RegisterExporterParquetWaitingOperationsCallback, Value: w.waiting.Load},
		hub.Counter{Register: w.meter.RegisterExporterParquetWaitingFilesCallback, Value: func() int64 {
			if w.uploads == nil {
				return 0
			}
			_, n := w.spool.Unsent()
			return int64(n)
		}},
	))
}

// tick closes files that are due. A disk that takes nothing shows in the status of the component, and is logged once.
func (w *writer) tick(now time.Time) {
	var err error
	if run := w.thread.Do(context.Background(), func() {
		err = w.spool.Tick(now)
		w.waiting.Store(w.spool.Waiting())
	}); run != nil {
		err = run
	}
	w.status.Set("directory", err)
	switch {
	case err != nil && !w.blocked:
		w.log.Warn("The file cannot be written; requests are refused meanwhile", zap.Error(err))
	case err == nil && w.blocked:
		w.log.Info("Files are written again")
	}
	w.blocked = err != nil
}

// traces takes the operations of a request. After an error none is taken.
func (w *writer) traces(ctx context.Context, td ptrace.Traces) error {
	batches, operations := read(td)
	var err error
	if run := w.thread.Do(ctx, func() {
		err = w.spool.Add(batches, time.Now())
		w.waiting.Store(w.spool.Waiting())
	}); run != nil {
		err = run
	}
	if err != nil {
		w.meter.ExporterParquetRefusedRequests.Add(ctx, 1)
		return err
	}
	if foreign := td.SpanCount() - operations; foreign > 0 {
		w.meter.ExporterParquetDroppedSpans.Add(ctx, int64(foreign), metric.WithAttributes(attribute.String("reason", "no_operation")))
	}
	return nil
}

// read returns the operations of a request by rank, and how many there are.
func read(td ptrace.Traces) (batches []columns.Batch, operations int) {
	ranks, summaries := otelmap.ReadOpsAndSummaries(td, nil)
	batches = make([]columns.Batch, len(ranks))
	for i := range ranks {
		batches[i] = columns.Batch{RankOps: ranks[i], Summaries: summaries[i]}
		operations += len(ranks[i].Ops)
	}
	return batches, operations
}

// shutdown writes what is in memory. Files that are not uploaded yet are by the next run.
func (w *writer) shutdown(ctx context.Context) error {
	if w.thread == nil {
		return nil // was never started
	}
	if w.uploads != nil {
		w.uploads.stop()
	}
	w.interval.Stop(func() {})
	var err error
	if run := w.thread.Do(context.WithoutCancel(ctx), func() { err = w.spool.Close(time.Now()) }); run != nil {
		err = run
	}
	w.thread.Stop()
	w.meter.Shutdown()
	return err
}
