// SPDX-License-Identifier: Apache-2.0

package sequenceextension

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensioncapabilities"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/extension/sequenceextension/internal/metadata"
	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/component/ledger"
	"github.com/lockstep-otel/lockstep/internal/sequence"
)

// tickInterval is how often the ledger decides what time decides.
const tickInterval = time.Second

// service is the extension.
type service struct {
	cfg       *Config
	id        component.ID
	log       *zap.Logger
	telemetry *metadata.TelemetryBuilder
	interval  *hub.Interval
	seen      atomic.Pointer[seen]

	mu       sync.Mutex // guards what follows; held while it is stored, so that changes are stored in order
	store    *store
	ledger   *sequence.Ledger
	analyses int
	failed   bool // the last change could not be stored
}

// seen is what telemetry shows.
type seen struct {
	totals        sequence.Totals
	open, streams int64
}

var (
	_ ledger.Service                  = (*service)(nil)
	_ extensioncapabilities.Dependent = (*service)(nil)
)

func newSequence(cfg *Config, set extension.Settings) (*service, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, fmt.Errorf("make counters: %w", err)
	}
	s := &service{cfg: cfg, id: set.ID, log: set.Logger, telemetry: telemetry}
	s.seen.Store(&seen{})
	s.interval = hub.NewInterval(tickInterval, s.tick)
	return s, s.observe()
}

// Dependencies implements extensioncapabilities.Dependent: the storage starts first and ends last.
func (s *service) Dependencies() []component.ID {
	if s.cfg.StorageID == nil {
		return nil
	}
	return []component.ID{*s.cfg.StorageID}
}

// Start implements component.Component.
func (s *service) Start(ctx context.Context, host component.Host) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	client, err := hub.OpenStorage(ctx, host, s.cfg.StorageID, component.KindExtension, s.id)
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	var kept sequence.Store
	if client != nil {
		s.store = &store{client: client}
		kept = s.store
	}
	s.ledger, err = sequence.NewLedger(s.cfg.ledger(), kept, time.Now())
	if err != nil {
		if s.store.failed {
			return errors.Join(err, client.Close(ctx))
		}
		s.log.Warn("What is stored of spans that arrived cannot be used: those of open steps are not counted if they are lost", zap.Error(err))
	}
	s.publish()
	s.interval.Start()
	return nil
}

// Shutdown implements component.Component.
func (s *service) Shutdown(ctx context.Context) error {
	var err error
	s.interval.Stop(func() {
		if s.store != nil {
			err = s.store.client.Close(ctx)
		}
		s.telemetry.Shutdown()
	})
	if err != nil {
		return fmt.Errorf("close storage: %w", err)
	}
	return nil
}

// change has the ledger changed, and logs where that is not stored, once until it is.
func (s *service) change(do func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := do()
	if err != nil {
		s.telemetry.ExtensionSequenceStorageFailures.Add(context.Background(), 1)
		if !s.failed {
			s.log.Warn("Which spans arrived cannot be stored: a kill before it can be makes counts wrong", zap.Error(err))
		}
	}
	s.failed = err != nil
}

func (s *service) tick(now time.Time) {
	s.change(func() error {
		err := s.ledger.Tick(now)
		s.publish()
		return err
	})
}

// publish stores what telemetry shows.
func (s *service) publish() {
	s.seen.Store(&seen{totals: s.ledger.Totals(), open: s.ledger.Open(), streams: int64(s.ledger.Streams())})
}

// Join implements ledger.Service.
func (s *service) Join() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.analyses++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.analyses--
	})
}

// Arriving implements ledger.Service.
func (s *service) Arriving(all []sequence.Arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Expect(all)
}

// Refused implements ledger.Service.
func (s *service) Refused(all []sequence.Arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.Refuse(all)
}

// Arrived implements ledger.Service.
func (s *service) Arrived(all []sequence.Arrival) {
	s.change(func() error {
		if s.analyses == 0 {
			for i := range all {
				for _, numbers := range all[i].Steps {
					all[i].Loose = all[i].Loose.Union(numbers)
				}
				all[i].Steps = nil
			}
		}
		return s.ledger.Arrive(all, time.Now())
	})
}

// Begin implements ledger.Service.
func (s *service) Begin(step sequence.Step) (of sequence.Verdict) {
	s.change(func() (err error) {
		of, err = s.ledger.Begin(step)
		return err
	})
	return of
}

// End implements ledger.Service.
func (s *service) End(steps []sequence.Step) { s.change(func() error { return s.ledger.End(steps) }) }

// Losses implements ledger.Service.
func (s *service) Losses() []sequence.Loss {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Losses()
}
