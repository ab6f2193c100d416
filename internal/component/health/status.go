// SPDX-License-Identifier: Apache-2.0

package health

import (
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
)

// Status reports to the collector whether a component can read what its configuration names: a recoverable
// error while it cannot, OK once it can again. It reports changes alone, and is safe for concurrent use. The
// zero value has no host, and reports nothing.
type Status struct {
	mu       sync.Mutex
	host     component.Host
	problems map[string]error
	said     string
	log      *zap.Logger
	logged   map[string]bool // the errors of the last report
}

// Start names the host that changes are reported to.
func (s *Status) Start(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
}

// LogTo names a log for a warning about each path that can no longer be used: one when it begins. Without
// it, the component writes its own.
func (s *Status) LogTo(log *zap.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = log
}

// Set records the error of one part that the component reads; nil clears it.
func (s *Status) Set(part string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.problems == nil {
		s.problems = map[string]error{}
	}
	if s.problems[part] = err; err == nil {
		delete(s.problems, part)
	}
	s.report()
}

func (s *Status) report() {
	var all List
	for _, part := range slices.Sorted(maps.Keys(s.problems)) {
		all.Add(s.problems[part])
	}
	err, text := all.Err(), ""
	if err != nil {
		text = err.Error()
	}
	if text == s.said {
		return
	}
	s.said = text
	s.warn(all.all)
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if err != nil {
		event = componentstatus.NewRecoverableErrorEvent(err)
	}
	componentstatus.ReportStatus(s.host, event)
}

// warn logs the errors that the last report did not have.
func (s *Status) warn(all []error) {
	if s.log == nil {
		return
	}
	is := make(map[string]bool, len(all))
	for _, err := range all {
		is[err.Error()] = true
		if !s.logged[err.Error()] {
			s.log.Warn("A path of the configuration cannot be used", zap.Error(err))
		}
	}
	s.logged = is
}
