// SPDX-License-Identifier: Apache-2.0

package torchtracereceiver

import (
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
)

// health tells the collector how the receiver fares. It says and logs a change
// once: watch mode finds an empty directory empty at every poll.
type health struct {
	host component.Host
	log  *zap.Logger
	last string // the error that was said last; empty when well
}

func newHealth(host component.Host, log *zap.Logger) *health {
	return &health{host: host, log: log}
}

// failed says that nothing will come of this input any more.
func (h *health) failed(err error) {
	h.log.Error("No trace could be read", zap.Error(err))
	componentstatus.ReportStatus(h.host, componentstatus.NewPermanentErrorEvent(err))
}

// troubled says that something is wrong and may mend by itself.
func (h *health) troubled(err error) {
	if err.Error() == h.last {
		return
	}
	h.last = err.Error()
	h.log.Warn("No trace could be read yet", zap.Error(err))
	componentstatus.ReportStatus(h.host, componentstatus.NewRecoverableErrorEvent(err))
}

// well says that an earlier trouble is over.
func (h *health) well() {
	if h.last == "" {
		return
	}
	h.last = ""
	componentstatus.ReportStatus(h.host, componentstatus.NewEvent(componentstatus.StatusOK))
}
