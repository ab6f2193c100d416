// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// filled is a timeline of n hosts with two clocks each, in a ring of ten neighbours,
// after so many windows.
func filled(b *testing.B, n, windows int) *Timeline {
	b.Helper()
	tl := New(Options{})
	for k := range windows {
		feedWindow(b, tl, n, int64(k))
		tl.Advance(time.Unix(0, epoch+int64(k)*windowN))
	}
	return tl
}

func feedWindow(b *testing.B, tl *Timeline, n int, k int64) {
	b.Helper()
	at := (k + 1) * windowN
	add := func(src, dst string, offset int64, source string) {
		if err := tl.AddEdge(model.ClockEdge{
			Src: src, Dst: dst, At: at, Span: windowN, Lower: offset - 1000, Upper: offset + 1000, Offset: offset, Sigma: 50,
			DriftBound: 1e-8, Samples: 100, Source: source, Stamps: model.StampKernel,
		}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range n {
		add(raw(i), realtime(i), epoch, model.EdgePair)
		for d := 1; d <= min(5, n-1); d++ {
			add(raw(i), raw((i*31+d*d*17+d)%n+boolInt((i*31+d*d*17+d)%n == i)), 0, model.EdgeProbe)
		}
	}
}

func boolInt(b bool) int {
	if b {
		return -1
	}
	return 0
}

func BenchmarkPlace(b *testing.B) {
	tl := filled(b, 64, 64)
	id, at := realtime(7), epoch+60*windowN
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, ok := tl.Place(id, at+int64(i%1000)*1_000_000); !ok {
			b.Fatal("not placed")
		}
	}
}

func BenchmarkBetween(b *testing.B) {
	tl := filled(b, 64, 8)
	at := epoch + 7*windowN
	b.ResetTimer()
	for i := range b.N {
		if _, ok := tl.Between(realtime(7), at+int64(i%1000)*1000, realtime(9), at); !ok {
			b.Fatal("not bounded")
		}
	}
}

// What a window costs beside the solution itself, and how much memory a history takes.
func BenchmarkAdvance(b *testing.B) {
	for _, n := range []int{64, 1024, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			tl := filled(b, n, 3)
			k := int64(3)
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				feedWindow(b, tl, n, k)
				b.StartTimer()
				out := tl.Advance(time.Unix(0, epoch+k*windowN))
				if len(out.Models) != 2*n {
					b.Fatalf("got %d models; want %d", len(out.Models), 2*n)
				}
				k++
			}
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "heap-MB")
			runtime.KeepAlive(tl)
		})
	}
}

// What an agent tells of both clocks of its host between two windows.
func BenchmarkPromptPair(b *testing.B) {
	tl := filled(b, 64, 64)
	at := 64 * windowN
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		host, k := i%64, int64(i/64)
		e := model.ClockEdge{
			Src: raw(host), Dst: realtime(host), At: at + 2000*k, Span: windowN, Lower: epoch - 300, Upper: epoch + 300, Offset: epoch, Sigma: 20,
			DriftBound: 1e-7, Samples: 100, Source: model.EdgePair, Stamps: model.StampKernel, Prompt: true,
		}
		if err := tl.AddEdge(e); err != nil {
			b.Fatal(err)
		}
	}
}
