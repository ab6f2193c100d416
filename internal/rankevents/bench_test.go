// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/lockstep-otel/lockstep/internal/ring"
)

// BenchmarkFoldSteady folds step after step of a rank that has been read for
// long: nothing is allocated per event, nor per step.
func BenchmarkFoldSteady(b *testing.B) {
	const ops = 256
	cfg := DefaultConfig()
	cfg.Level = ring.LevelSummary
	f := newFakeRing(0, 2)
	f.mark(0, 0)
	for i := range uint64(ops) {
		f.op(opSpec{fn: "AllReduce", seq: i, step: 0, launch: 10 + i*10, start: 12 + i*10, end: 18 + i*10, bytes: 1 << 20, wire: 2})
	}
	src := &replay{fakeRing: f, step: f.records}
	r := NewNode(cfg).Attach(src, "")
	emit := func(*Batch) {}
	b.ReportAllocs()
	for b.Loop() {
		src.advance(ops*10 + 20)
		r.Pass(at(src.n*(ops*10+20)), emit)
	}
	if s := r.Stats(); s.Operations != int64(src.n)*ops || s.Late > 0 {
		b.Fatal(s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(src.n*(ops+1)), "ns/event")
}

// BenchmarkFoldSteadyKernels does so with a kernel for each operation and three
// requests a step.
func BenchmarkFoldSteadyKernels(b *testing.B) {
	src, r := steadyKernels()
	emit := func(*Batch) {}
	b.ReportAllocs()
	for b.Loop() {
		src.advance(steadyStep)
		r.Pass(at((src.n+1)*steadyStep), emit)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(src.n*uint64(len(src.step))), "ns/event")
}

// steadyStep is how long a step of steadyKernels is, in µs, for its 128 operations and
// kernels.
const steadyStep = 128*10 + 20

func steadyKernels() (*replay, *Rank) {
	cfg := DefaultConfig()
	cfg.Kernels = KernelSummary
	f := witnessed()
	f.mark(0, 0)
	for i := range uint64(128) {
		f.op(opSpec{fn: "AllReduce", seq: i, step: 0, launch: 10 + i*10, start: 12 + i*10, end: 18 + i*10, bytes: 1 << 20})
		f.kernel(kernelSpec{name: "gemm", launch: 11 + i*10, start: 13 + i*10, end: 17 + i*10})
	}
	for n := range uint64(3) {
		f.link(0, n+1, 20)
	}
	src := &replay{fakeRing: f, step: f.records}
	return src, NewNode(cfg).Attach(src, "")
}

func TestFoldingAllocatesNothing(t *testing.T) {
	src, r := steadyKernels()
	emit := func(*Batch) {}
	pass := func() {
		src.advance(steadyStep)
		r.Pass(at((src.n+1)*steadyStep), emit)
	}
	for range 400 { // until what is kept for reuse is there
		pass()
	}
	assert.Less(t, testing.AllocsPerRun(200, pass), 1.0)
	assert.Equal(t, int64(128*src.n), r.Stats().Kernels)
	assert.Zero(t, r.Stats().Late)
	assert.Greater(t, r.Stats().StepsClosed, int64(590))
}

// replay hands the records of one step on again and again, moved in time.
type replay struct {
	*fakeRing
	step []ring.Record
	n    uint64
}

func (s *replay) advance(micro uint64) {
	s.n++
	s.fakeRing.step = int64(s.n)
	for i := range s.step {
		rec := &s.step[i]
		switch rec.Kind() {
		case ring.KindStep:
			rec[2], rec[3] = s.n, rec[3]+micro*us
			continue
		case ring.KindKernel, ring.KindClock:
			rec[2], rec[3], rec[4] = rec[2]+micro*us, rec[3]+micro*us, rec[4]+micro*us
			continue
		case ring.KindLink:
			rec[2], rec[6] = s.n, rec[6]+micro*us
			continue
		}
		rec[6], rec[7], rec[11] = rec[6]+micro*us, 1000|s.n<<32, rec[11]+micro*us
	}
}

func (s *replay) Poll(_ ring.Level, fn func(int, *ring.Record)) ring.Counts {
	for i := range s.step {
		fn(1, &s.step[i])
	}
	return ring.Counts{Read: uint64(len(s.step))}
}
