// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"io"
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/lockstep-otel/lockstep/internal/component/deliver/delivertest"
)

// BenchmarkConsume is what the hub takes for a batch beside the engine.
func BenchmarkConsume(b *testing.B) {
	r := newRig(b)
	r.Logs = func(plog.Logs) Input { return Input{Bytes: 1, Apply: func(time.Time) Output { return Output{} }} }
	r.logsToLogs(r.logs)
	r.begin()
	ld := batch("x")
	b.ReportAllocs()
	for b.Loop() {
		_ = r.instances[0].ConsumeLogs(context.Background(), ld)
	}
	b.StopTimer()
	r.stop()
}

// BenchmarkPutFindings is what an outbox takes for an output of many findings while the next component takes
// nothing: the same findings again and again, and others, for which there is no room.
func BenchmarkPutFindings(b *testing.B) {
	const findings = 1 << 16
	for name, again := range map[string]bool{"again": true, "others": false} {
		b.Run(name, func(b *testing.B) {
			h := newHub(&Engine{Settings: Settings{Interval: time.Hour}}, self, newRig(b).set.TelemetrySettings)
			o := h.toLogs(zap.NewNop(), delivertest.NewStuck(b))
			all, n := logEntries(&Output{Findings: numbered(findings, 1)}), 0
			b.ReportAllocs()
			for b.Loop() {
				if !again {
					b.StopTimer()
					for i := range all {
						n++
						all[i].key = strconv.Itoa(n)
					}
					b.StartTimer()
				}
				o.box.put(all)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*findings), "ns/finding")
		})
	}
}

// BenchmarkBatch is what an outbox takes to list what it sends, of which one half came since the refusal.
func BenchmarkBatch(b *testing.B) {
	h := newHub(&Engine{Settings: Settings{Interval: time.Hour}}, self, newRig(b).set.TelemetrySettings)
	o := h.toLogs(zap.NewNop(), delivertest.NewStuck(b))
	for half := range 2 {
		all := make([]entry, maxEntries/2)
		for i := range all {
			all[i].key = strconv.Itoa(half*len(all) + i)
		}
		o.box.put(all)
		if half == 0 {
			o.box.refusedForNow(o.box.batch(), io.ErrShortWrite)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		o.box.batch()
	}
}
