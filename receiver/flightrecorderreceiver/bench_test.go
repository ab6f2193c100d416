// SPDX-License-Identifier: Apache-2.0

package flightrecorderreceiver

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/lockstep-otel/lockstep/internal/flightrecorder/frwrite"
	"github.com/lockstep-otel/lockstep/receiver/flightrecorderreceiver/internal/metadatatest"
)

// A node's eight dumps of 2,000 entries with stacks: read, decoded and handed on. The first
// time, all that is over is told of as spans; after that, nothing is new.
func BenchmarkNode(b *testing.B) {
	dir := b.TempDir()
	bytes := int64(0)
	for rank := range int64(8) {
		d := dumpOf(rank % 4)
		d.Groups[0].Ranks = []int64{0, 1, 2, 3, 4, 5, 6, 7}
		for i := range int64(1998) {
			e := d.Entries[0]
			e.RecordID, e.CollectiveSeq, e.OpID = 2+i, 3+i, 3+i
			e.Frames = []frwrite.Frame{{Name: "backward", File: "/job/model.py", Line: i % 40}, {Name: "train_step", File: "/job/train.py", Line: 42}}
			d.Entries = append(d.Entries, e)
		}
		data := frwrite.Pickle(d)
		bytes += int64(len(data))
		writeDump(b, filepath.Join(dir, fmt.Sprint("rank_", rank)), data)
	}
	tel := componenttest.NewTelemetry()
	cfg := config(dir)
	cfg.AllRanks = true
	h, err := newCollector(metadatatest.NewSettings(tel), cfg)
	require.NoError(b, err)
	h.out.ctx = b.Context()
	h.out.logsTo(consumertest.NewNop())
	h.out.tracesTo(consumertest.NewNop())
	h.out.metricsTo(consumertest.NewNop())
	b.ReportAllocs()
	b.SetBytes(bytes)
	for b.Loop() {
		h.tracker.Look(time.Now(), nil) // all files are new
		h.poll(time.Now())
	}
	h.telemetry.Shutdown()
}
