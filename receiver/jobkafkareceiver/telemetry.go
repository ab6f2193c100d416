// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// observe has telemetry read the partitions.
func (m *member) observe() error {
	sum := func(of func(*partition) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			var n int64
			for _, p := range m.owned.list() {
				n += of(p)
			}
			o.Observe(n)
			return nil
		}
	}
	return errors.Join(
		m.meter.RegisterReceiverJobKafkaLagCallback(sum(func(p *partition) int64 { return p.lag() })),
		m.meter.RegisterReceiverJobKafkaHeldRecordsCallback(sum(func(p *partition) int64 { return p.held.Load() })),
		m.meter.RegisterReceiverJobKafkaPartitionsCallback(sum(func(*partition) int64 { return 1 })),
	)
}
