// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/health"
)

// status tells the collector and its log how the receiver fares.
type status struct {
	health.Status

	host component.Host
	log  *zap.Logger
	said string // why there was no trace at the last look; empty where there was one
}

func newStatus(host component.Host, log *zap.Logger) *status {
	s := &status{host: host, log: log}
	s.Start(host)
	s.LogTo(log)
	return s
}

// failed reports that nothing will come of this input any more.
func (s *status) failed(err error) {
	s.log.Error("No trace could be read", zap.Error(err))
	componentstatus.ReportStatus(s.host, componentstatus.NewPermanentErrorEvent(err))
}

// nothing logs why a look found no trace; nil: it found some. It logs a change once: watch mode finds an
// empty directory empty at every poll.
func (s *status) nothing(err error) {
	was := s.said
	if s.said = ""; err != nil {
		s.said = err.Error()
	}
	if s.said != "" && s.said != was {
		s.log.Warn("No trace could be read yet", zap.Error(err))
	}
}
