// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rankeventsreceiver

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-otel/lockstep/internal/rankevents"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

const fillSteps = 2000 // of 64 operations and a mark

// filledRing is a ring with a lane full of operations.
func filledRing(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	startJobOf(b, dir, 1, fillSteps, "fill", "LOCKSTEP_RING_RECORDS=131072", "LOCKSTEP_RING_LANES=2").wait()
	paths, err := filepath.Glob(filepath.Join(dir, "*.ring"))
	if err != nil || len(paths) != 1 {
		b.Fatal(paths, err)
	}
	return paths[0]
}

// foldAll reads the whole ring once and returns its counters and the time of a
// core that this took, opening apart.
func foldAll(b *testing.B, path string, level ring.Level, node *rankevents.Node, emit rankevents.Emit) (rankevents.Stats, time.Duration) {
	b.Helper()
	r, err := ring.Open(path, ring.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	rank := node.Attach(r, "bench")
	r.Snapshot(func(int, *ring.Record) {}) // the pages are there, as those just written are
	begin := cpuTime(b)
	rank.Pass(ring.Now(), emit)
	return rank.Stats(), cpuTime(b) - begin
}

// cpuTime is what this process has used of all cores: on a machine that others
// use too, the time that passes says little.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFold is from the ring to folded summaries: what is paid per event at
// level summary. What is allocated is of opening the ring and of 2,000 steps that
// are open at once; BenchmarkFoldSteady of internal/rankevents says what is else.
func BenchmarkFold(b *testing.B) {
	path := filledRing(b)
	cfg := newDefaultConfig().engine()
	cfg.Level = ring.LevelSummary
	var events int64
	var took time.Duration
	b.ReportAllocs()
	for b.Loop() {
		stats, d := foldAll(b, path, cfg.Level, rankevents.NewNode(cfg), func(*rankevents.Batch) {})
		if stats.Operations != fillSteps*64 {
			b.Fatal(stats)
		}
		events += stats.Records
		took += d
	}
	b.ReportMetric(float64(events)/took.Seconds(), "events/core-s")
	b.ReportMetric(float64(took.Nanoseconds())/float64(events), "ns/event")
}

// BenchmarkSpans is from the ring to spans ready to be handed on, at level
// collectives.
func BenchmarkSpans(b *testing.B) {
	path := filledRing(b)
	cfg := newDefaultConfig().engine()
	var events int64
	var took time.Duration
	b.ReportAllocs()
	for b.Loop() {
		spans := 0
		stats, d := foldAll(b, path, cfg.Level, rankevents.NewNode(cfg), func(batch *rankevents.Batch) {
			spans += toTraces(batch, true).SpanCount()
		})
		if int64(spans) != stats.Emitted {
			b.Fatal(spans, stats)
		}
		events += stats.Records
		took += d
	}
	b.ReportMetric(float64(events)/took.Seconds(), "events/core-s")
	b.ReportMetric(float64(took.Nanoseconds())/float64(events), "ns/event")
}
