// SPDX-License-Identifier: Apache-2.0

package desyncconnector

import (
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/lockstep-otel/lockstep/connector/desyncconnector/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/desync/watch"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/rankstate"
)

// hangs feeds a watch, and reports what it concludes.
type hangs struct {
	watch    *watch.Watch
	measures *measures

	reading sync.Mutex // guards what states are read with
	states  rankstate.Decoder

	counts          hub.Counts
	foreign, unread atomic.Int64
	seen            atomic.Pointer[watch.Stats] // read by telemetry
}

// inboxShare is the part of max_memory_mib that may wait for the watch while a job is judged.
const inboxShare = 2

func newEngine(cfg *Config, set connector.Settings) (*hub.Engine, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	h := &hangs{watch: watch.New(cfg.watch()), measures: newMeasures(cfg.MaxSeries)}
	h.publish() // before telemetry reads it
	return &hub.Engine{
		Settings: hub.Settings{
			Interval: cfg.CheckInterval, FlushInterval: cfg.FlushInterval, RepeatInterval: cfg.RepeatInterval,
			InboxBytes: cfg.maxBytes() / inboxShare, Storage: cfg.StorageID, Jobs: cfg.JobsID,
		},
		Traces: h.readSpans, Logs: h.readRecords, Forget: h.watch.Forget,
		Tick: func(now time.Time) hub.Output { return changed(h.watch.Tick(now)) },
		Flush: func(now time.Time) hub.Output {
			return hub.Output{Findings: h.watch.Flush(now)}
		},
		Open:    func(time.Time) []model.Finding { return h.watch.Standing() },
		Metrics: h.metrics, Seen: h.publish, Stop: telemetry.Shutdown,
		States: map[string]hub.State{"findings": h.watch},
		Counts: &h.counts, StorageFailures: telemetry.ConnectorDesyncStorageFailures,
	}, h.observe(telemetry)
}

// changed has metrics follow each change of a finding.
func changed(findings []model.Finding) hub.Output {
	return hub.Output{Findings: findings, Measured: len(findings) > 0}
}

func (h *hangs) metrics(now time.Time) pmetric.Metrics {
	h.measures.set(h.watch, now)
	md := pmetric.NewMetrics()
	otelmap.WriteMetrics(md, now, h.measures.all()...)
	return md
}

func (h *hangs) publish() {
	s := h.watch.Stats()
	h.seen.Store(&s)
}

func (h *hangs) observe(t *metadata.TelemetryBuilder) error {
	of := func(value func(*watch.Stats) int64) func() int64 {
		return func() int64 { return value(h.seen.Load()) }
	}
	return hub.Observe(
		hub.Counter{Register: t.RegisterConnectorDesyncAbsencesCallback, Value: of(func(s *watch.Stats) int64 { return s.Absences })},
		hub.Counter{Register: t.RegisterConnectorDesyncBytesHeldCallback, Value: of(func(s *watch.Stats) int64 { return s.Bytes })},
		hub.Counter{Register: t.RegisterConnectorDesyncCommsRefusedCallback, Value: of(func(s *watch.Stats) int64 { return s.CommsRefused })},
		hub.Counter{Register: t.RegisterConnectorDesyncFindingsForgottenCallback, Value: h.counts.EventsLost.Load},
		hub.Counter{Register: t.RegisterConnectorDesyncFindingsLostCallback, Value: h.counts.EventsRefused.Load},
		hub.Counter{Register: t.RegisterConnectorDesyncFindingsOpenedCallback, Value: of(func(s *watch.Stats) int64 { return s.Told })},
		hub.Counter{Register: t.RegisterConnectorDesyncForeignRecordsCallback, Value: h.foreign.Load},
		hub.Counter{Register: t.RegisterConnectorDesyncGapsHurriedCallback, Value: of(func(s *watch.Stats) int64 { return s.GapsHurried })},
		hub.Counter{Register: t.RegisterConnectorDesyncInboxDroppedCallback, Value: h.counts.InboxRefused.Load},
		hub.Counter{Register: t.RegisterConnectorDesyncJobsEvictedCallback, Value: of(func(s *watch.Stats) int64 { return s.JobsEvicted })},
		hub.Counter{Register: t.RegisterConnectorDesyncJudgementsCallback, Value: of(func(s *watch.Stats) int64 { return s.Judged })},
		hub.Counter{Register: t.RegisterConnectorDesyncOpensDroppedCallback, Value: of(func(s *watch.Stats) int64 { return s.OpensDropped })},
		hub.Counter{Register: t.RegisterConnectorDesyncOpsCallback, Value: of(func(s *watch.Stats) int64 { return s.Ops })},
		hub.Counter{Register: t.RegisterConnectorDesyncRanksRefusedCallback, Value: of(func(s *watch.Stats) int64 { return s.RanksRefused })},
		hub.Counter{Register: t.RegisterConnectorDesyncStatesCallback, Value: of(func(s *watch.Stats) int64 { return s.States })},
		hub.Counter{Register: t.RegisterConnectorDesyncStatesForeignCallback, Value: of(func(s *watch.Stats) int64 { return s.StatesForeign })},
		hub.Counter{Register: t.RegisterConnectorDesyncStatesLateCallback, Value: of(func(s *watch.Stats) int64 { return s.StatesLate })},
		hub.Counter{Register: t.RegisterConnectorDesyncStatesOfTwinsCallback, Value: of(func(s *watch.Stats) int64 { return s.StatesOfTwins })},
		hub.Counter{Register: t.RegisterConnectorDesyncTimesAheadCallback, Value: of(func(s *watch.Stats) int64 { return s.TimesAhead })},
		hub.Counter{Register: t.RegisterConnectorDesyncUnanalysedCallback, Value: of(func(s *watch.Stats) int64 { return s.Unanalysed })},
		hub.Counter{Register: t.RegisterConnectorDesyncUnreadCallback, Value: h.unread.Load},
		hub.Counter{Register: t.RegisterConnectorDesyncWithheldCallback, Value: of(func(s *watch.Stats) int64 { return s.Withheld })},
		hub.Counter{Register: t.RegisterConnectorDesyncWitnessesDroppedCallback, Value: of(func(s *watch.Stats) int64 { return s.WitnessesDropped })},
	)
}
