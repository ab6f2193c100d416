// SPDX-License-Identifier: Apache-2.0

package clockskewprocessor

import (
	"reflect"
	"sync"

	"go.opentelemetry.io/collector/component"
)

// instances are the processors of one collector, which has one for each pipeline.
// Their metrics bear nothing that tells pipelines apart. Counters of one series are
// added up; of gauges the last counts, so each reports what all of them have seen.
type instances struct {
	mu  sync.Mutex
	all map[*skew]struct{}
}

// collectors are told apart by where their metrics go.
var collectors = struct {
	mu sync.Mutex
	of map[any]*instances
}{of: map[any]*instances{}}

// join adds a processor to those of its collector.
func join(p *skew, set component.TelemetrySettings) *instances {
	key := keyOf(set)
	collectors.mu.Lock()
	defer collectors.mu.Unlock()
	in := collectors.of[key]
	if in == nil {
		in = &instances{all: map[*skew]struct{}{}}
		collectors.of[key] = in
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.all[p] = struct{}{}
	return in
}

func keyOf(set component.TelemetrySettings) any {
	if v := reflect.ValueOf(set.MeterProvider); v.IsValid() && v.Comparable() {
		return set.MeterProvider
	}
	return nil
}

// leave takes a processor away; it may be called again.
func (in *instances) leave(p *skew) {
	collectors.mu.Lock()
	defer collectors.mu.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.all, p)
	if len(in.all) > 0 {
		return
	}
	for key, other := range collectors.of {
		if other == in {
			delete(collectors.of, key)
		}
	}
}

// each calls visit for every processor that works, one after the other and with
// its lock held.
func (in *instances) each(visit func(*skew)) {
	in.mu.Lock()
	members := make([]*skew, 0, len(in.all))
	for p := range in.all {
		members = append(members, p)
	}
	in.mu.Unlock()
	for _, p := range members {
		p.mu.Lock()
		if p.engine != nil {
			visit(p)
		}
		p.mu.Unlock()
	}
}
