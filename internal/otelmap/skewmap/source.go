// SPDX-License-Identifier: Apache-2.0

package skewmap

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/lockstep-otel/lockstep/internal/causality"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// source is what all spans of a resource have in common.
type source struct {
	clock   *causality.Clock // nil: none known
	epoch   int64            // of clock
	clockID string
	job     *causality.Job
	rank    model.Rank
	isRank  bool
}

// unknownService is OpenTelemetry's name for a service that has none.
const unknownService = "unknown_service"

// Resolver knows hosts by their ids and names.
type Resolver interface {
	// Resolve returns the real-time clock of a host.
	Resolve(host string) (clock string, ok bool)
}

func (m *Mapper) source(res pcommon.Resource) source {
	var id, epoch, instance, service, job pcommon.Value
	var hosts [3]string
	attrs := res.Attributes()
	var found [5]bool
	for name, v := range attrs.All() {
		switch name {
		case semconv.ClockID:
			id, found[0] = v, v.Str() != ""
		case semconv.ClockEpoch:
			epoch, found[1] = v, v.Type() == pcommon.ValueTypeInt
		case semconv.ServiceInstanceID:
			instance, found[2] = v, v.Str() != ""
		case semconv.ServiceName:
			service, found[3] = v, v.Str() != ""
		case semconv.JobID:
			job, found[4] = v, v.Str() != ""
		case semconv.HostID:
			hosts[0] = v.Str()
		case semconv.HostName:
			hosts[1] = v.Str()
		case semconv.K8SNodeName:
			hosts[2] = v.Str()
		}
	}
	var s source
	switch {
	case found[0]:
		s.clockID = id.Str()
		if found[1] {
			s.epoch = epoch.Int()
		}
	case hosts != [3]string{}:
		s.clockID = m.hostClock(hosts[:])
	case found[2]:
		s.clockID = "service:" + instance.Str() + "/realtime"
	}
	s.clock = m.clock(s.clockID)
	switch {
	case found[4]:
		s.job = m.engine.Job(job.Str())
	case found[3]:
		s.job = m.engine.Job(service.Str())
	default:
		s.job = m.engine.Job(unknownService)
	}
	if _, ok := attrs.Get(semconv.Rank); ok {
		s.rank, s.isRank = otelmap.ResourceToRank(res, nil)
	}
	return s
}

// clock returns the clock of a name; nil, as for no name, where it can be no clock's.
func (m *Mapper) clock(id string) *causality.Clock {
	if model.CheckClockName(id) != nil {
		return nil
	}
	return m.engine.Clock(id)
}

// hostClock returns the clock of the first name under which the host is known,
// else one of its own, of which nothing but this name is known.
func (m *Mapper) hostClock(hosts []string) string {
	first := ""
	for _, h := range hosts {
		if model.CheckClockName(h) != nil {
			continue
		}
		if id, ok := m.resolver.Resolve(h); ok {
			return id
		}
		if first == "" {
			first = h
		}
	}
	if first == "" {
		return ""
	}
	return "host:" + first + "/?/realtime"
}
