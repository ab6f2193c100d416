// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver"
	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// However large a log record or a span is, what waits for a component that is stuck is bounded.
func TestOutlets_NextIsStuck_HoldTheLimitInBytes(t *testing.T) {
	const size, limit, put = 1 << 20, 10 << 20, 100
	large := strings.Repeat("x", size)
	for name, puts := range map[string]func(o *deliver.Outlets, lost func(int)) deliver.Sent{
		"logs": func(o *deliver.Outlets, lost func(int)) deliver.Sent {
			ld := plog.NewLogs()
			ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr(large)
			return o.PutLogs(ld, lost)
		},
		"traces": func(o *deliver.Outlets, lost func(int)) deliver.Sent {
			td := ptrace.NewTraces()
			td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName(large)
			return o.PutTraces(td, lost)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, lost := deliver.NewOutlets(zap.NewNop(), limit), 0
				stuck := delivertest.NewStuck(t)
				o.AddLogs(stuck)
				o.AddTraces(stuck)
				for range put {
					_ = puts(o, func(items int) { lost += items }).Wait(t.Context()) // lost counts it
				}
				assert.Equal(t, put-limit/size+1, lost, "each is a little more than a tenth of the limit")
				time.Sleep(time.Hour)
			})
		})
	}
}

// The value of a series that is put last has no next one: it is delivered behind the one under way.
func TestOutlets_MetricsUnderWay_TheLastIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, given := deliver.NewOutlets(zap.NewNop(), 1<<20), []int64{}
		next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
			time.Sleep(deliver.Patience / 10)
			given = append(given, md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).IntValue())
			return nil
		})
		require.NoError(t, err)
		o.AddMetrics(next)
		put := func(value int64) {
			o.PutMetrics(func() pmetric.Metrics {
				md := pmetric.NewMetrics()
				md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(value)
				return md
			})
		}
		put(1)
		put(2)
		_, stopped := o.Stop(t.Context())
		put(3)
		require.NoError(t, stopped())
		assert.Equal(t, []int64{1, 3}, given)
	})
}
