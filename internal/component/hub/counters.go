// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// Counter is one of a component's own metrics, with what it shows.
type Counter struct {
	Register func(metric.Int64Callback) error
	Value    func() int64
}

// Observe registers the metrics of a component.
func Observe(counters ...Counter) error {
	var errs []error
	for _, c := range counters {
		errs = append(errs, c.Register(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.Value())
			return nil
		}))
	}
	return errors.Join(errs...)
}
