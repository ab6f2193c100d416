// SPDX-License-Identifier: Apache-2.0

package jobkafkareceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// observe has telemetry read the partitions, by topic: several receivers of a collector read different ones.
func (m *member) observe() error {
	sum := func(of func(*partition) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			n := map[string]int64{}
			if topics := m.shown.Load(); topics != nil {
				for _, topic := range *topics {
					n[topic] = 0
				}
			}
			for _, p := range m.owned.list() {
				n[p.topic] += of(p)
			}
			for topic, n := range n {
				o.Observe(n, metric.WithAttributeSet(attribute.NewSet(attribute.String("topic", topic))))
			}
			return nil
		}
	}
	return errors.Join(
		m.meter.RegisterReceiverJobKafkaLagCallback(sum(func(p *partition) int64 { return p.lag() })),
		m.meter.RegisterReceiverJobKafkaHeldRecordsCallback(sum(func(p *partition) int64 { return p.held.Load() })),
		m.meter.RegisterReceiverJobKafkaPartitionsCallback(sum(func(*partition) int64 { return 1 })),
	)
}
