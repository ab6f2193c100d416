// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"
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
					puts(o, func(items int) { lost += items })
				}
				assert.Equal(t, put-limit/size+1, lost, "each is a little more than a tenth of the limit")
				time.Sleep(time.Hour)
			})
		})
	}
}
