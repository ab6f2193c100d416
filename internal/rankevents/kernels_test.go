// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// witnessed is a ring that CUPTI feeds, with a clock.
func witnessed() *fakeRing {
	f := newFakeRing(0, 2)
	f.feeds, f.cupti = ring.WitnessCUPTI, ring.CUPTIActive
	f.clock(0, 0)
	return f
}

func TestAKernelIsAnOperationOfTheStepThatLaunchedIt(t *testing.T) {
	f := witnessed()
	r, g := attach(f, DefaultConfig())
	f.mark(3, 10)
	// Launched in step 3, it ran when the host was in step 4 already.
	f.kernel(kernelSpec{name: "gemm", launch: 90, start: 150, end: 190, stream: 7, corr: 42, grid: [3]uint64{70000, 2, 1}, flags: kGraph})
	f.mark(4, 100)
	f.kernel(kernelSpec{name: "gemm", launch: 95, start: 200, end: 210, stream: 7})
	f.kernel(kernelSpec{name: "Memcpy HtoD", launch: 110, start: 220, end: 230, flags: kCopy, bytes: 4096, stream: 9})
	f.kernel(kernelSpec{launch: 111, start: 231, end: 232, flags: kSet, bytes: 64})
	f.clock(1000, 0)
	r.Pass(at(1100), g.emit(t))
	r.Finish(at(1200), false, g.emit(t))

	compute := opsOf(g.ops, model.KindCompute)
	require.Len(t, compute, 2)
	op := compute[0]
	bound := op.Clock.Bound
	op.Clock.Bound = model.Optional[float64]{}
	assert.Equal(t, model.Op{
		Kind: model.KindCompute, Name: "gemm", Step: model.Some(int64(3)), Start: unixAt(150), End: unixAt(190),
		Launch: model.Some(unixAt(90)), Stream: model.Some(int64(7)), Correlation: model.Some(int64(42)),
		WorkGrid: "70000,2,1", GraphCaptured: true,
		Clock: model.ClockNote{
			Offset: model.Some(0.0), Timeline: "host:hid/boot/raw", RawStart: model.Some(unixAt(150)),
		},
	}, op)
	assert.InDelta(t, 50e-9, bound.V, 1e-12, "half of what a reading takes")
	assert.Equal(t, []any{int64(1), model.Some(int64(3)), false}, []any{compute[1].Seq, compute[1].Step, compute[1].GraphCaptured})
	copies := opsOf(g.ops, model.KindCopy)
	require.Len(t, copies, 2)
	assert.Equal(t, []any{"Memcpy HtoD", model.Some(int64(4096)), model.Some(int64(4)), ""},
		[]any{copies[0].Name, copies[0].WorkBytes, copies[0].Step, copies[0].WorkGrid})
	assert.Equal(t, "set", copies[1].Name, "what has no name is called by what it is")

	require.Equal(t, []int64{3, 4}, g.steps())
	steps := opsOf(g.ops, model.KindStep)
	assert.Equal(t, unixAt(210), steps[0].End, "a step lasts until what it launched has ended")
	assert.Equal(t, []any{model.Some(int64(2)), model.Some(int64(2))}, []any{steps[0].StepOps, steps[1].StepOps})
	assert.Equal(t, map[string]int64{"gemm": 2}, g.hist[3])
	assert.Equal(t, []int64{2, 0}, []int64{g.sums[3].Ops, g.sums[3].Collectives})
	assert.Equal(t, []int64{4, 4}, []int64{r.Stats().Kernels, r.Stats().Operations})
}

// Hand over late is no reason to close a step without its kernels, and none to keep
// it for ever.
func TestAStepWaitsForItsKernels(t *testing.T) {
	f := witnessed()
	r, g := attach(f, DefaultConfig())
	emit := g.emit(t)
	f.mark(0, 0)
	f.mark(1, 100)
	r.Pass(at(110), emit)
	r.Pass(at(120), emit)
	assert.Empty(t, g.steps(), "its kernels have not come")
	f.kernel(kernelSpec{name: "a", launch: 5, start: 10, end: 20})
	r.Pass(at(130), emit)
	r.Pass(at(140), emit)
	assert.Empty(t, g.steps(), "more of its kernels may come")
	f.kernel(kernelSpec{name: "a", launch: 105, start: 110, end: 120, flags: kComm})
	r.Pass(at(150), emit)
	assert.Empty(t, g.steps(), "other streams are handed over with this pass")
	f.kernel(kernelSpec{name: "a", launch: 6, start: 20, end: 30})
	r.Pass(at(160), emit)
	require.Equal(t, []int64{0}, g.steps())
	assert.Equal(t, int64(2), g.sums[0].Ops)

	f.mark(2, 200)
	f.step = 2
	r.Pass(at(210), emit)
	assert.Len(t, g.steps(), 1)
	f.cupti = ring.CUPTIPaused
	r.Pass(at(220), emit)
	assert.Equal(t, []int64{0, 1}, g.steps(), "who was stopped has handed over what it had")
	assert.Zero(t, r.Stats().StepsExpired)

	f.cupti = ring.CUPTIActive
	f.mark(3, 300)
	r.Pass(at(310), emit)
	r.Pass(at(320), emit)
	assert.Len(t, g.steps(), 2)
	r.Pass(at(320)+uint64(DefaultConfig().StepDeadline), emit)
	assert.Equal(t, []int64{0, 1, 2}, g.steps(), "without kernels, a step closes at its deadline")
	assert.Equal(t, int64(1), r.Stats().StepsExpired)
	f.mark(4, 400)
	r.Finish(at(320)+uint64(DefaultConfig().StepDeadline)+1, false, emit)
	assert.Equal(t, []int64{0, 1, 2, 3, 4}, g.steps())
}

// Where CUPTI watches and nothing is launched, steps wait for a first kernel once, and
// for its successors when it has come after all.
func TestStepsOfARankWithoutKernels(t *testing.T) {
	for name, set := range map[string]func(*fakeRing){
		"active":            func(*fakeRing) {},
		"the witness alone": func(f *fakeRing) { f.cupti = ring.CUPTIUnasked },
	} {
		t.Run(name, func(t *testing.T) {
			f := witnessed()
			set(f)
			r, g := attach(f, DefaultConfig())
			emit := g.emit(t)
			f.mark(0, 0)
			r.Pass(at(5_000_000), emit) // a long step: nothing waits yet
			f.mark(1, 6_000_000)
			r.Pass(at(6_000_010), emit)
			r.Pass(at(6_000_020), emit)
			r.Pass(at(8_000_019), emit)
			assert.Empty(t, g.steps(), "they may still come")
			r.Pass(at(8_000_020), emit)
			assert.Equal(t, []int64{0}, g.steps())
			f.mark(2, 8_100_000)
			r.Pass(at(8_100_010), emit)
			r.Pass(at(8_100_020), emit)
			assert.Equal(t, []int64{0, 1}, g.steps(), "none has come")
			assert.Zero(t, r.Stats().StepsExpired)

			f.kernel(kernelSpec{name: "late", launch: 6_000_100, start: 6_000_110, end: 6_000_120})
			f.kernel(kernelSpec{name: "a", launch: 8_100_001, start: 8_100_002, end: 8_100_003})
			f.clock(8_100_100, 0)
			r.Pass(at(8_100_110), emit)
			f.mark(3, 8_200_000)
			r.Pass(at(8_200_010), emit)
			r.Pass(at(11_000_000), emit)
			assert.Equal(t, []int64{0, 1}, g.steps(), "more may come")
			assert.Equal(t, int64(1), r.Stats().Late)
		})
	}
}

// Texts of grids are kept for so many; those of others are left out.
func TestGridsAreBounded(t *testing.T) {
	f := witnessed()
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	for i := range uint64(maxGrids + 2) {
		f.kernel(kernelSpec{name: "a", launch: 5, start: 10 + i, end: 20 + i, grid: [3]uint64{i + 1, 1, 1}})
	}
	f.kernel(kernelSpec{name: "a", launch: 5, start: 9000, end: 9001, grid: [3]uint64{1, 1, 1}})
	f.clock(9500, 0)
	r.Pass(at(10_000), g.emit(t))
	without, first := 0, 0
	for _, op := range opsOf(g.ops, model.KindCompute) {
		switch op.WorkGrid {
		case "":
			without++
		case "1,1,1":
			first++
		}
	}
	assert.Equal(t, []int{2, 2}, []int{without, first})
	assert.Len(t, r.kernels.grids, maxGrids)
}

// Neither a ring without CUPTI waits, nor one whose kernels the level leaves out.
func TestWhoAwaitsKernels(t *testing.T) {
	for _, tc := range []struct {
		name  string
		set   func(*fakeRing, *Config)
		waits bool
	}{
		{"without", func(f *fakeRing, _ *Config) { f.feeds, f.cupti = ring.WitnessNCCL, ring.CUPTIUnasked }, false},
		{"the witness alone", func(f *fakeRing, _ *Config) { f.cupti = ring.CUPTIUnasked }, true},
		{"the state alone", func(f *fakeRing, _ *Config) { f.feeds = 0 }, true},
		{"yielded", func(f *fakeRing, _ *Config) { f.cupti = ring.CUPTIYielded }, false},
		{"no library", func(f *fakeRing, _ *Config) { f.cupti = ring.CUPTINoLibrary }, false},
		{"refused", func(f *fakeRing, _ *Config) { f.cupti = ring.CUPTIRefused }, false},
		{"unknown", func(f *fakeRing, _ *Config) { f.cupti = 77 }, false},
		{"launches are not recorded", func(f *fakeRing, _ *Config) { f.kernel(kernelSpec{start: 6, end: 7}) }, false},
		{"some launches are not", func(f *fakeRing, _ *Config) {
			f.kernel(kernelSpec{start: 6, end: 7})
			f.kernel(kernelSpec{launch: 5, start: 6, end: 7})
		}, true},
		{"level summary", func(_ *fakeRing, c *Config) { c.Level = ring.LevelSummary }, false},
		{"kernels seen", func(f *fakeRing, _ *Config) {
			f.feeds, f.cupti = 0, 0
			f.kernel(kernelSpec{launch: 5, start: 6, end: 7})
		}, true},
		{"kernels seen long ago", func(f *fakeRing, c *Config) {
			f.feeds, f.cupti = 0, 0
			c.StepDeadline = time.Nanosecond
			f.kernel(kernelSpec{launch: 5, start: 6, end: 7})
		}, false},
	} {
		f, cfg := witnessed(), DefaultConfig()
		tc.set(f, &cfg)
		r, g := attach(f, cfg)
		f.mark(0, 0)
		r.Pass(at(50), g.emit(t))
		f.mark(1, 100)
		r.Pass(at(110), g.emit(t))
		r.Pass(at(120), g.emit(t))
		assert.Equal(t, tc.waits, len(g.steps()) == 0, tc.name)
	}
}

// The parts by hand: each instant of 0 to 1000 has one owner.
func TestTheSplitOfAStepWithKernels(t *testing.T) {
	f := witnessed()
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	// 0-100 nothing is launched, 100-115 the launch takes effect, 115-200 it waits.
	f.kernel(kernelSpec{name: "a", launch: 100, start: 200, end: 400})
	// Beside a collective from 300: 200-300 compute, 300-400 overlapped, 400-500 transfer.
	f.op(opSpec{fn: "AllReduce", step: 0, launch: 250, start: 300, end: 500})
	// 450-600: transfer until 500, then copying, but for 550-560, which computes.
	f.kernel(kernelSpec{name: "c", launch: 300, start: 450, end: 600, flags: kCopy})
	f.kernel(kernelSpec{name: "b", launch: 301, start: 550, end: 560})
	// Nothing from 600: the next was launched long before, so it waited for something.
	f.kernel(kernelSpec{name: "a", launch: 400, start: 700, end: 900})
	// What a kernel of a length of 0 says nothing of.
	f.kernel(kernelSpec{name: "z", launch: 640, start: 650, end: 650})
	f.mark(1, 1000)
	f.clock(1000, 0)
	r.Pass(at(1100), g.emit(t))
	r.Finish(at(1200), false, g.emit(t))
	s := g.sums[0]
	for what, v := range map[string][2]float64{
		"launch_idle":        {s.LaunchIdle, 115 + 100},
		"dependency_idle":    {s.DependencyIdle, 85 + 100},
		"compute":            {s.Compute, 100 + 10 + 200},
		"compute_overlapped": {s.ComputeOverlapped, 100},
		"transfer":           {s.Transfer, 100},
		"copy":               {s.Copy, 50 + 40},
	} {
		assert.InDelta(t, v[1]*1e-6, v[0], 1e-9, what)
	}
	assert.InDelta(t, 1000e-6, s.LaunchIdle+s.DependencyIdle+s.Compute+s.ComputeOverlapped+s.Transfer+s.Copy, 1e-9)
}

func TestKernelsWaitForAClock(t *testing.T) {
	f := newFakeRing(0, 2)
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.kernel(kernelSpec{name: "a", launch: 5, start: 10, end: 20})
	r.Pass(at(50), g.emit(t))
	assert.Empty(t, opsOf(g.ops, model.KindCompute))
	f.clock(60, 0)
	r.Pass(at(70), g.emit(t))
	assert.Len(t, opsOf(g.ops, model.KindCompute), 1)
	assert.Zero(t, r.Stats().KernelsWithoutClock)

	// Without any, they are counted at the end; beyond the bound at once.
	f = newFakeRing(0, 2)
	r, g = attach(f, DefaultConfig())
	f.mark(0, 0)
	for range maxHeldKernels + 3 {
		f.kernel(kernelSpec{name: "a", launch: 5, start: 10, end: 20})
	}
	r.Pass(at(50), g.emit(t))
	assert.Equal(t, int64(3), r.Stats().KernelsWithoutClock)
	r.Finish(at(60), false, g.emit(t))
	assert.Equal(t, int64(maxHeldKernels+3), r.Stats().KernelsWithoutClock)
	assert.Empty(t, opsOf(g.ops, model.KindCompute))
}

// More kernels in one pass than are held are placed before the lanes are drained.
func TestManyKernelsInOnePass(t *testing.T) {
	f := witnessed()
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	for range 2*maxHeldKernels + 5 {
		f.kernel(kernelSpec{name: "a", launch: 5, start: 10, end: 20})
	}
	r.Pass(at(50), g.emit(t))
	assert.Equal(t, int64(2*maxHeldKernels+5), r.Stats().Kernels)
}

// A stamp that no reading is near to is not guessed, nor one around which the clock
// was stepped by more than a step takes; a small one widens the bound.
func TestKernelsAroundAStepOfTheClock(t *testing.T) {
	f := witnessed()
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.clock(1_000_000, 0)
	f.clock(1_000_500, 10_000)
	f.kernel(kernelSpec{name: "a", launch: 1_000_100, start: 1_000_200, end: 1_000_300})
	f.clock(2_000_000, 10_000)
	f.clock(2_000_500, 5_010_000)
	f.kernel(kernelSpec{name: "b", launch: 2_000_100, start: 2_000_200, end: 2_000_300, ahead: 10_000})
	f.clock(3_000_000, 5_010_000)
	f.kernel(kernelSpec{name: "c", launch: 2_999_000, start: 2_999_100, end: 2_999_200, ahead: 5_010_000})
	f.kernel(kernelSpec{name: "d", launch: 3_000_000_000, start: 3_000_000_001, end: 3_000_000_002})
	r.Pass(at(3_100_000), g.emit(t))
	ops := opsOf(g.ops, model.KindCompute)
	require.Len(t, ops, 2)
	assert.GreaterOrEqual(t, ops[0].Clock.Bound.V, 10e-3)
	assert.InDelta(t, float64(unixAt(1_000_200)), float64(ops[0].Start), ops[0].Clock.Bound.V*1e9)
	assert.Equal(t, "c", ops[1].Name)
	assert.Equal(t, unixAt(2_999_100), ops[1].Start)
	assert.Less(t, ops[1].Clock.Bound.V, 1e-3)
	assert.InDelta(t, -5.01, ops[1].Clock.Offset.V, 1e-9)
	assert.Equal(t, int64(2), r.Stats().KernelsWithoutClock)
	assert.Equal(t, int64(2), r.Stats().KernelClockSteps)
}

func TestKernelsThatBelongNowhere(t *testing.T) {
	for level, want := range map[ring.Level]int{ring.LevelCollectives: 1, ring.LevelAll: 3} {
		cfg := DefaultConfig()
		cfg.Level = level
		f := newFakeRing(0, 2)
		f.clock(0, 0)
		r, g := attach(f, cfg)
		f.mark(1, 100)
		r.Pass(at(110), g.emit(t))
		f.mark(2, 200)
		r.Pass(at(210), g.emit(t)) // step 1 is closed
		f.kernel(kernelSpec{name: "late", launch: 120, start: 130, end: 140})
		f.kernel(kernelSpec{name: "before", launch: 50, start: 60, end: 70})
		f.kernel(kernelSpec{name: "unlaunched", start: 130, end: 140})
		f.kernel(kernelSpec{name: "ncclDevKernel", launch: 220, start: 230, end: 240, flags: kComm})
		f.kernel(kernelSpec{name: "backwards", launch: 220, start: 240, end: 230})
		f.kernel(kernelSpec{name: "future", launch: 220, start: 7_200_000_000, end: 7_200_000_001})
		f.records = append(f.records, ring.Record{1: uint64(ring.KindKernel) | 2<<8, 3: 5}, ring.Record{1: uint64(ring.KindClock) | 1<<8, 2: at(1), 3: 1, 5: 9 << 32},
			ring.Record{1: uint64(ring.KindClock) | 1<<8, 5: 1 << 32}, ring.Record{1: uint64(ring.KindClock) | 1<<8, 2: at(7_200_000_000), 3: 1, 5: 1 << 32})
		r.Pass(at(300), g.emit(t))
		s := r.Stats()
		assert.Equal(t, []int64{1, 1, 1, 1, 4, 1, 1, 3}, []int64{
			s.Late, s.WithoutStep, s.KernelsWithoutLaunch, s.KernelsOfComm, s.BadTimes, s.NotMapped, s.KernelsWithoutClock, s.Kernels,
		})
		ops := opsOf(g.ops, model.KindCompute)
		require.Len(t, ops, want, "%v", level)
		seqs := map[int64]bool{}
		for i := range ops {
			seqs[ops[i].Seq] = true
			assert.Equal(t, ops[i].Name == "late", ops[i].Step.OK, "a late one is handed on with its step, others only where all is wanted")
		}
		assert.Len(t, seqs, want, "no two make one span")
	}
}

func TestKernelsThatAreOnlyFolded(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Kernels = KernelSummary
	f := witnessed()
	r, g := attach(f, cfg)
	f.mark(0, 0)
	f.kernel(kernelSpec{name: "a", launch: 5, start: 10, end: 20})
	r.Finish(at(100), false, g.emit(t))
	require.Equal(t, []int64{0}, g.steps())
	assert.Len(t, g.ops, 1)
	assert.Equal(t, model.Some(int64(0)), g.ops[0].StepOps)
	assert.Equal(t, map[string]int64{"a": 1}, g.hist[0])
	assert.InDelta(t, 10e-6, g.sums[0].Compute, 1e-9)
}

func TestKernelsKeepTheirRawClock(t *testing.T) {
	cfg := DefaultConfig()
	cfg.RawGPUClock = true
	f := witnessed()
	r, g := attach(f, cfg)
	f.mark(0, 0)
	f.clock(500, 40)
	f.kernel(kernelSpec{name: "a", launch: 600, start: 610, end: 620, ahead: 40})
	f.clock(700, 40)
	r.Finish(at(800), false, g.emit(t))
	op := opsOf(g.ops, model.KindCompute)[0]
	assert.Equal(t, []any{"gpu:pid 100/cupti", unixAt(650), unixAt(660), model.Some(int64(0)), model.ClockNote{}},
		[]any{op.ClockID, op.Start, op.End, op.Step, op.Clock})
	assert.Equal(t, model.Some(unixAt(600)), op.Launch, "the launch is on the host's clock")
}

// Steps that nobody marks begin with their anchor, for kernels too.
func TestKernelsOfUnmarkedSteps(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Anchor = Anchor{Function: model.AllReduce, Every: 2}
	f := witnessed()
	r, g := attach(f, cfg)
	for i := range uint64(6) {
		f.op(opSpec{fn: "AllReduce", seq: i, step: -1, launch: 100 + i*100, start: 110 + i*100, end: 150 + i*100})
		f.kernel(kernelSpec{name: "k", launch: 160 + i*100, start: 170 + i*100, end: 180 + i*100})
	}
	f.open(opSpec{fn: "AllReduce", seq: 6, step: -1, launch: 655, start: 660, end: 999}, ring.SlotStarted)
	r.Pass(at(1000), g.emit(t))
	var steps []int64
	for _, op := range opsOf(g.ops, model.KindCompute) {
		steps = append(steps, op.Step.V)
	}
	assert.Equal(t, []int64{0, 0, 1, 1, 2}, steps, "the last was launched after what is in flight, and may be of the next step")
	f.slots = nil
	f.op(opSpec{fn: "AllReduce", seq: 6, step: -1, launch: 655, start: 660, end: 999})
	r.Pass(at(1100), g.emit(t))
	ops := opsOf(g.ops, model.KindCompute)
	require.Len(t, ops, 6)
	assert.Equal(t, model.Some(int64(3)), ops[5].Step)
}

// Kernels leave keys for what is communicated.
func TestKernelKeysAreBounded(t *testing.T) {
	f := witnessed()
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.code("AllReduce") // codes of functions have 8 bits
	for i := range 400 {
		f.kernel(kernelSpec{name: fmt.Sprintf("kernel%d", i), launch: 5, start: 10, end: 20})
	}
	r.Pass(at(50), g.emit(t))
	f.op(opSpec{fn: "AllReduce", step: 0, launch: 10, start: 40, end: 60})
	r.Finish(at(100), false, g.emit(t))
	assert.Equal(t, int64(400-maxKernelKeys), g.hist[0]["(other)"])
	assert.Equal(t, int64(1), g.hist[0]["all_reduce world"])
	assert.Len(t, opsOf(g.ops, model.KindCompute), 400, "operations keep their names")
	assert.Positive(t, r.Stats().KeysOverflow)
}

// Kernels of one product whose tiles a library chose differently are compared.
func TestAKernelsKeyLeavesOutWhatALibraryChose(t *testing.T) {
	f := witnessed()
	r, g := attach(f, DefaultConfig())
	f.mark(0, 0)
	f.kernel(kernelSpec{name: "ampere_sgemm_128x64_tn", launch: 5, start: 10, end: 20})
	f.kernel(kernelSpec{name: "ampere_sgemm_32x32_tn", launch: 6, start: 20, end: 30})
	f.kernel(kernelSpec{name: "flash_fwd_kernel", launch: 7, start: 30, end: 40})
	f.kernel(kernelSpec{launch: 8, start: 40, end: 50})
	r.Pass(at(60), g.emit(t))
	r.Finish(at(100), false, g.emit(t))
	var got [][]any
	for _, op := range opsOf(g.ops, model.KindCompute) {
		got = append(got, []any{op.Name, op.Key, op.Seq})
	}
	assert.Equal(t, [][]any{
		{"ampere_sgemm_128x64_tn", "ampere_sgemm_tn", int64(0)},
		{"ampere_sgemm_32x32_tn", "ampere_sgemm_tn", int64(1)},
		{"flash_fwd_kernel", "", int64(0)},
		{"kernel", "", int64(0)},
	}, got, "numbers are those among operations of one key")
	assert.Equal(t, map[string]int64{"ampere_sgemm_tn": 2, "flash_fwd_kernel": 1, "kernel": 1}, g.hist[0])
}

func TestStepsAfterARestartHaveTheirOwnKernels(t *testing.T) {
	f := witnessed()
	r, g := attach(f, DefaultConfig())
	f.mark(7, 0)
	f.kernel(kernelSpec{name: "a", launch: 5, start: 10, end: 20})
	f.mark(8, 50)
	f.kernel(kernelSpec{name: "a", launch: 55, start: 60, end: 70})
	r.Pass(at(80), g.emit(t))
	r.Pass(at(90), g.emit(t))
	require.Equal(t, []int64{7}, g.steps())
	f.mark(0, 100) // it counts anew
	f.kernel(kernelSpec{name: "a", launch: 56, start: 71, end: 75})
	f.kernel(kernelSpec{name: "a", launch: 105, start: 110, end: 120})
	r.Pass(at(130), g.emit(t))
	assert.Equal(t, int64(1), r.Stats().Late, "it was launched in the old count")
	r.Finish(at(140), false, g.emit(t))
	assert.Equal(t, int64(1), g.sums[0].Ops)
}

func TestKernelsAsDetail(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Level = ring.LevelSummary
	f := witnessed()
	r, g := attach(f, cfg)
	f.mark(0, 0)
	r.Pass(at(50), g.emit(t))
	f.kernel(kernelSpec{name: "a", launch: 5, start: 10, end: 20, corr: 3})
	f.old, f.records = append(f.old, f.records...), nil // above the level
	r.Detail(at(60), g.emit(t))
	ops := opsOf(g.ops, model.KindCompute)
	require.Len(t, ops, 1)
	assert.Equal(t, []any{model.Some(int64(0)), int64(3), unixAt(10)}, []any{ops[0].Step, ops[0].Seq, ops[0].Start})
	r.Detail(at(60)+uint64(2*time.Minute), g.emit(t))
	assert.Len(t, opsOf(g.ops, model.KindCompute), 1, "it is older than what is retained")
}

func TestBegins(t *testing.T) {
	var b beginTable
	_, known, forgotten := b.of(5)
	assert.Equal(t, []bool{false, false}, []bool{known, forgotten})
	for i := range int64(maxBegins) {
		b.add(i, uint64(i)*10+100)
	}
	n, known, _ := b.of(100 + 42*10 + 9)
	assert.Equal(t, []any{int64(42), true}, []any{n, known})
	b.add(9999, 105) // a thread that was late to say so
	n, _, _ = b.of(107)
	assert.Equal(t, int64(9999), n)
	assert.LessOrEqual(t, len(b.list), maxBegins)
	_, known, forgotten = b.of(50)
	assert.Equal(t, []bool{false, true}, []bool{known, forgotten}, "it was half forgotten")
}
