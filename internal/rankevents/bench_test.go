package rankevents

import (
	"testing"

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
		if rec.Kind() == ring.KindStep {
			rec[2], rec[3] = s.n, rec[3]+micro*us
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
