// SPDX-License-Identifier: Apache-2.0

package ncclinspectorreceiver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/lockstep-otel/lockstep/receiver/ncclinspectorreceiver/internal/metadata"
)

// BenchmarkReadOnce reads a log of 20,000 verbose lines of one channel, and hands on
// spans and metrics.
func BenchmarkReadOnce(b *testing.B) {
	const n = 20000
	path := filepath.Join(b.TempDir(), "n.log")
	text := lines(0, 0, n)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	begin := time.Now()
	for b.Loop() {
		cfg := config(path)
		cfg.Mode = modeOnce
		r, err := newReader(receivertest.NewNopSettings(metadata.Type), cfg)
		if err != nil {
			b.Fatal(err)
		}
		r.tracesTo(consumertest.NewNop())
		r.metrics = r.out.Metrics(consumertest.NewNop())
		if err := r.begin(b.Context(), host{}); err != nil {
			b.Fatal(err)
		}
		<-r.finished
		if err := r.end(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*b.N)/time.Since(begin).Seconds(), "lines/s")
}
