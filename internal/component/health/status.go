// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// Status reports to the collector whether a component can read what its configuration names: a recoverable
// error while it cannot, OK once it can again. It reports changes alone, and is safe for concurrent use. The
// zero value has no host, and reports nothing.
type Status struct {
	mu       sync.Mutex
	host     component.Host
	problems map[string]error
	said     string
}

// Start names the host that changes are reported to.
func (s *Status) Start(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
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
	var all []error
	for _, part := range slices.Sorted(maps.Keys(s.problems)) {
		all = append(all, s.problems[part])
	}
	err, text := errors.Join(all...), ""
	if err != nil {
		text = err.Error()
	}
	if text == s.said {
		return
	}
	s.said = text
	event := componentstatus.NewEvent(componentstatus.StatusOK)
	if err != nil {
		event = componentstatus.NewRecoverableErrorEvent(err)
	}
	componentstatus.ReportStatus(s.host, event)
}
