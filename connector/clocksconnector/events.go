// SPDX-License-Identifier: Apache-2.0

package clocksconnector

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/lockstep-otel/lockstep/internal/component/hub"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap/clockmap"
	"github.com/lockstep-otel/lockstep/internal/semconv"
)

// event is an edge, a model, or the name of a host.
type event struct {
	edge     *model.ClockEdge
	model    *model.ClockModel
	name, id string
}

// eventBytes is about what an event takes: its names are short.
const eventBytes = 512

// read takes the clock events among the records.
func (c *clocks) read(ld plog.Logs) hub.Input {
	var events []event
	for _, rl := range ld.ResourceLogs().All() {
		if e, ok := c.hostOf(rl.Resource().Attributes()); ok {
			events = append(events, e)
		}
		for _, sl := range rl.ScopeLogs().All() {
			for _, lr := range sl.LogRecords().All() {
				if e, ok := c.event(lr); ok {
					events = append(events, e)
				}
			}
		}
	}
	if len(events) == 0 {
		return hub.Input{}
	}
	return hub.Input{Bytes: eventBytes * len(events), Apply: func(time.Time) hub.Output {
		c.apply(events)
		return hub.Output{}
	}}
}

// hostOf joins the name of a host with the id in its clocks: spans may know only one of them.
func (c *clocks) hostOf(resource pcommon.Map) (event, bool) {
	name, okName := resource.Get(semconv.HostName)
	id, okID := resource.Get(semconv.HostID)
	if !okName || !okID {
		return event{}, false
	}
	e := event{name: name.AsString(), id: id.AsString()}
	for _, s := range []string{e.name, e.id} {
		if err := model.CheckClockName(s); s != "" && err != nil {
			c.refuse(fmt.Errorf("read names of a host: %w", err))
			return event{}, false
		}
	}
	return e, e.name != ""
}

func (c *clocks) event(lr plog.LogRecord) (event, bool) {
	switch lr.EventName() {
	case semconv.EventClockEdge:
		e, _, err := clockmap.LogToEdge(lr)
		c.refuse(err)
		return event{edge: &e}, err == nil
	case semconv.EventClockModel:
		m, _, err := clockmap.LogToModel(lr)
		c.refuse(err)
		return event{model: &m}, err == nil
	}
	c.foreign.Add(1)
	return event{}, false
}

func (c *clocks) apply(events []event) {
	for _, e := range events {
		switch {
		case e.edge != nil:
			c.edges.Add(1)
			c.refuse(c.timeline.AddEdge(*e.edge))
		case e.model != nil:
			c.models.Add(1)
			c.refuse(c.timeline.AddModel(*e.model))
		default:
			c.timeline.Alias(e.name, e.id)
		}
	}
}
