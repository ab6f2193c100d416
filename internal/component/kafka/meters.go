// SPDX-License-Identifier: Apache-2.0

package kafka

import (
	"sync"
	"sync/atomic"

	"github.com/rcrowley/go-metrics"
)

// Meters is the registry in which a client counts. The client's own has a goroutine that computes moving
// averages and never ends (go-metrics' meterArbiter), and none at all is no choice: it panics. Meters keeps the
// sums alone. Its zero value is ready for use.
type Meters struct {
	mu  sync.Mutex
	all map[string]any
}

// Sent returns how many bytes were sent to brokers, compressed and with everything around the records.
func (m *Meters) Sent() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.all["outgoing-byte-rate"].(*meter); ok {
		return c.Count()
	}
	return 0
}

// GetOrRegister returns the metric of a name; at its first use it is made.
func (m *Meters) GetOrRegister(name string, make any) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have, ok := m.all[name]; ok {
		return have
	}
	m.put(name, metricOf(make))
	return m.all[name]
}

func (m *Meters) put(name string, metric any) {
	if m.all == nil {
		m.all = map[string]any{}
	}
	m.all[name] = metric
}

// metricOf returns what counts in place of a metric of the library, or of what makes one.
func metricOf(make any) any {
	switch make := make.(type) {
	case func() metrics.Meter, metrics.Meter:
		return &meter{}
	case func() metrics.Histogram, metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Counter:
		return make()
	}
	return make
}

// Register sets the metric of a name.
func (m *Meters) Register(name string, metric any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(name, metricOf(metric))
	return nil
}

// Get returns the metric of a name, nil where there is none.
func (m *Meters) Get(name string) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all[name]
}

// Each calls a function with every metric.
func (m *Meters) Each(call func(string, any)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, metric := range m.all {
		call(name, metric)
	}
}

// Unregister keeps the metric: what a client has counted before it connected again counts as well.
func (m *Meters) Unregister(string) {}

// UnregisterAll keeps all metrics.
func (m *Meters) UnregisterAll() {}

// GetAll returns nothing: the values are in the metrics.
func (m *Meters) GetAll() map[string]map[string]any { return nil }

// RunHealthchecks does nothing: there are none.
func (m *Meters) RunHealthchecks() {}

// meter is a sum without rates.
type meter struct {
	metrics.NilMeter
	sum atomic.Int64
}

// Count returns the sum.
func (m *meter) Count() int64 { return m.sum.Load() }

// Mark adds to the sum.
func (m *meter) Mark(n int64) { m.sum.Add(n) }
