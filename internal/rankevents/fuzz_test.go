// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"encoding/binary"
	"testing"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// FuzzRecords folds records of any words. Whatever they say: nothing crashes,
// the parts of a step sum to it, and what is held stays bounded.
func FuzzRecords(f *testing.F) {
	good := newFakeRing(0, 2)
	good.mark(0, 0)
	good.op(opSpec{fn: "AllReduce", step: 0, launch: 1, start: 2, end: 3})
	good.scope("x", 0, 1, 2, ring.PhaseTrain)
	good.proxy(true, 1, 0, 0, 0, 1, [3]uint64{1, 2, 3}, 4)
	good.clock(0, 0)
	good.kernel(kernelSpec{name: "gemm", launch: 2, start: 4, end: 9, grid: [3]uint64{8, 1, 1}})
	good.kernel(kernelSpec{start: 9, end: 10, flags: kCopy, bytes: 64})
	good.clock(15, 3)
	good.link(0, 5, 3)
	good.mark(1, 10)
	exchange(good, 3, 1, 0, 0, 1)
	var seed []byte
	for _, r := range good.records {
		for _, w := range r {
			seed = binary.LittleEndian.AppendUint64(seed, w)
		}
	}
	f.Add(seed, uint8(3))
	f.Add(seed[:128*2], uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, level uint8) {
		fake := newFakeRing(0, 2)
		fake.strings = good.strings
		cfg := DefaultConfig()
		cfg.RawGPUClock, cfg.Kernels = level&64 != 0, Kernels(level>>7)
		fake.cupti = ring.CUPTIState(level >> 3 & 7)
		cfg.Level, cfg.MaxOpenSteps, cfg.MaxStepOps, cfg.BatchOps = ring.Level(1+level%3), 3, 5, 7
		r := NewNode(cfg).Attach(fake, "")
		var c checked
		for i := 0; len(data) >= 128; i++ {
			var rec ring.Record
			for w := range rec {
				rec[w] = binary.LittleEndian.Uint64(data[8*w:])
			}
			data = data[128:]
			fake.records = append(fake.records, rec)
			if i%4 == 3 {
				r.Pass(at(uint64(i)*100), c.emit(t))
			}
			if len(r.kernels.held) > maxHeldKernels || r.kernels.clock.Len() > 256 || len(r.kernels.begins.list) > maxBegins {
				t.Fatalf("%d kernels held, %d readings, %d begins", len(r.kernels.held), r.kernels.clock.Len(), len(r.kernels.begins.list))
			}
			if len(r.steps.open) > cfg.MaxOpenSteps {
				t.Fatalf("%d open steps", len(r.steps.open))
			}
		}
		r.Finish(at(1_000_000), true, c.emit(t))
	})
}

type checked struct{}

func (checked) emit(t *testing.T) Emit {
	t.Helper()
	return func(b *Batch) {
		next := 0
		for i := range b.Ops {
			op := &b.Ops[i]
			if op.Kind != model.KindStep {
				continue
			}
			s := b.Summaries[next]
			next++
			if len(op.Links) > model.MaxStepLinks {
				t.Fatalf("%d links", len(op.Links))
			}
			took := float64(op.End-op.Start) * 1e-9
			if sum := s.Transfer + s.Compute + s.ComputeOverlapped + s.Copy + s.LaunchIdle + s.DependencyIdle; op.End < op.Start || sum < took-1e-6 || sum > took+1e-6 {
				t.Fatalf("step from %d to %d is divided into %v s", op.Start, op.End, sum)
			}
		}
		if len(b.Ops) > 7 {
			t.Fatalf("%d operations in a batch", len(b.Ops))
		}
	}
}
