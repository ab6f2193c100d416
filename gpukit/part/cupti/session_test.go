// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// A step of the test: what runs, and ns that each takes.
var work = []struct {
	name string
	ns   uint64
}{{"gemm", 50_000}, {"add", 4_000}, {"gemm", 50_000}, {copyName, 6_000}, {setName, 2_000}, {"adam", 20_000}}

const graphID = 7

// kernelsFrom returns the kernels of a window that begins at a time: sentinels, then
// the steps.
func kernelsFrom(begin uint64, steps int, graph bool) []kernel {
	var out []kernel
	at := begin
	add := func(name string, ns uint64, inGraph bool) {
		k := kernel{name: name, launch: at + 1000, start: at + 3000, end: at + 3000 + ns, placed: true}
		k.Start, k.End, k.Launched, k.Copy, k.Set, k.GPU = k.start, k.end, true, name == copyName, name == setName, 1
		if inGraph {
			k.Graph, k.GraphID = true, graphID
		}
		out = append(out, k)
		at = k.end
	}
	for range sentinels {
		add("at::cuda::spin_kernel", 1000, false)
	}
	for range steps {
		for _, w := range work {
			add(w.name, w.ns, graph)
		}
	}
	return out
}

func tallyOf(kernels []kernel) tally {
	t := tally{}
	for _, k := range kernels {
		t.add(k.name, k.End-k.Start)
	}
	return t
}

const (
	apart = 1_000_000_000 // ns from a window to the next
	steps = 3
)

// right returns a session in which all is as it must be.
func right(mode string) *session {
	s := &session{mode: mode, right: report.StandIn, facts: &facts{}, ring: &record{}, ended: true}
	for i, kind := range []string{"ours", "ours", "theirs", "ours", "theirs", "ours"} {
		begin := uint64(i+1) * apart
		w := window{Kind: kind, Steps: steps, Begin: begin, End: begin + apart/2, Status: "ring: x; CUPTI: active"}
		kernels := kernelsFrom(begin, steps, mode == "graph")
		var trace tally
		if kind == "ours" {
			s.ring.kernels = append(s.ring.kernels, kernels...)
		} else {
			trace, w.Resume = tallyOf(kernels), []int{0}
		}
		s.facts.Windows, s.traces, s.lacks = append(s.facts.Windows, w), append(s.traces, trace), append(s.lacks, 0)
	}
	return s
}

func statuses(checks []report.Check) map[string]report.Status {
	out := map[string]report.Status{}
	for _, c := range checks {
		out[c.Name] = c.Status
	}
	return out
}

func textOf(t *testing.T, checks []report.Check, name string) string {
	t.Helper()
	for _, c := range checks {
		if c.Name == name {
			return c.Text
		}
	}
	require.Fail(t, "no check "+name)
	return ""
}

func TestSession_AllRight_IsRight(t *testing.T) {
	for _, mode := range modes {
		for name, status := range statuses(right(mode).all()) {
			assert.Equal(t, report.StandIn, status, name)
		}
	}
}

func TestSession_WrongData_Fails(t *testing.T) {
	for _, tt := range []struct {
		name, mode string
		change     func(s *session)
		fails      string
	}{
		{"a kernel is dropped", "eager", func(s *session) { drop(s, len(s.ring.kernels)/4-1) }, "counts"},
		{"a copy is dropped", "eager", func(s *session) { drop(s, sentinels+3) }, "counts"},
		{"a sentinel is dropped", "eager", func(s *session) { drop(s, 0) }, "counts"},
		{"a kernel has another name", "eager", func(s *session) { s.ring.kernels[sentinels].name = "other" }, "counts"},
		{"a kernel too many", "eager", func(s *session) { s.traces[2]["gemm"] = ran{count: 1, ns: 1} }, "counts"},
		{"the other profiler's windows differ", "eager", func(s *session) { s.traces[4].add("adam", 5) }, "counts"},
		{"all take 3 % longer", "eager", func(s *session) { stretch(s, 1.03) }, "times"},
		{"all take 3 % less", "eager", func(s *session) { stretch(s, 0.97) }, "times"},
		{"a launch is missing", "eager", func(s *session) { s.ring.kernels[70].Launched = false }, "launches"},
		{"a launch after the start", "eager", func(s *session) { s.ring.kernels[70].launch = s.ring.kernels[70].start + 1 }, "launches"},
		{"a graph in eager mode", "eager", func(s *session) { s.ring.kernels[70].Graph, s.ring.kernels[70].GraphID = true, 1 }, "launches"},
		{"no graph in graph mode", "graph", func(s *session) { s.ring.kernels = right("eager").ring.kernels }, "launches"},
		{"a graph without its id", "graph", func(s *session) { s.ring.kernels[70].GraphID = 0 }, "launches"},
		{"the other profiler has no calls", "eager", func(s *session) { s.lacks[4] = 18 }, "profiler-launches"},
		{"a kernel without name", "eager", func(s *session) { s.ring.kernels[70].name = "" }, "names"},
		{"CUPTI dropped records", "eager", func(s *session) { s.ring.drops[20] = 1 }, "drops"},
		{"a launch came too late", "eager", func(s *session) { s.ring.drops[24] = 3 }, "drops"},
		{"the ring was lapped", "eager", func(s *session) { s.ring.counts.Lost = 1 }, "drops"},
		{"a kernel on another clock", "eager", func(s *session) { s.ring.kernels[70].placed = false }, "drops"},
		{"nothing after the other profiler", "eager", func(s *session) { s.ring.kernels = s.ring.kernels[:len(s.ring.kernels)/2] }, "resume"},
		{"a kernel less after it", "eager", func(s *session) { drop(s, len(s.ring.kernels)-1) }, "resume"},
		{"the first kernels after it", "eager", func(s *session) { loseSentinels(s, 2) }, "resume"},
		{"the first kernels of a window that is not the first after it", "eager", func(s *session) { loseSentinels(s, 3) }, "resume"},
		{"a kind of 2 % is off, and another makes up for it", "eager", func(s *session) {
			stretchKind(s, "adam", 0.05)
			stretchKind(s, "gemm", 1.19)
		}, "times"},
		{"a short kernel is off by more than its stamps are coarse", "eager", func(s *session) { stretchKind(s, "add", 1.025) }, "times"},
		{"all take 5 % longer, and one window of ours is erratic", "eager", func(s *session) {
			stretch(s, 1.05)
			stretchWindow(s, 3, 2)
		}, "times"},
		{"the other profiler has no time", "eager", func(s *session) { emptyTraces(s) }, "times"},
		{"nothing was recorded", "eager", func(s *session) { s.ring.kernels = nil }, "drops"},
		{"neither has a kernel", "eager", func(s *session) {
			s.ring.kernels = nil
			emptyTraces(s)
		}, "resume"},
	} {
		s := right(tt.mode)
		tt.change(s)
		assert.Equal(t, report.Failed, statuses(s.all())[tt.mode+"-"+tt.fails], tt.name)
	}
}

// windowKernels is how many kernels, copies and sets a window has.
var windowKernels = sentinels + steps*len(work)

// loseSentinels drops the first 60 kernels of a window of ours.
func loseSentinels(s *session, window int) {
	first := window * windowKernels
	s.ring.kernels = slices.Delete(s.ring.kernels, first, first+60)
}

func emptyTraces(s *session) {
	for i := range s.traces {
		if s.traces[i] != nil {
			s.traces[i] = tally{}
		}
	}
}

func stretchKind(s *session, name string, by float64) {
	for i := range s.ring.kernels {
		if k := &s.ring.kernels[i]; k.name == name {
			k.End = k.Start + uint64(by*float64(k.End-k.Start))
		}
	}
}

func stretchWindow(s *session, window int, by float64) {
	for i := range windowKernels {
		k := &s.ring.kernels[window*windowKernels+i]
		k.End = k.Start + uint64(by*float64(k.End-k.Start))
	}
}

func drop(s *session, i int) { s.ring.kernels = append(s.ring.kernels[:i:i], s.ring.kernels[i+1:]...) }

func stretch(s *session, by float64) {
	for i := range s.ring.kernels {
		k := &s.ring.kernels[i]
		k.End = k.Start + uint64(by*float64(k.End-k.Start))
	}
}

func TestSession_WindowsThatVary_DoNotDecide(t *testing.T) {
	s := right("eager")
	stretchKind(s, "gemm", 1.03)
	name := "gemm"
	s.traces[4][name] = ran{count: s.traces[4][name].count, ns: s.traces[4][name].ns * 2}
	s.traces[2][name] = ran{count: s.traces[2][name].count, ns: s.traces[2][name].ns * 8 / 10}
	assert.Equal(t, report.NotShown, statuses(s.all())["eager-times"])
}

// A window of ours that took longer by CUDA's events, too, is the device's.
func TestSession_AWindowThatCUDAEventsConfirm_DoesNotDecide(t *testing.T) {
	s := right("eager")
	stretch(s, 1.05)
	stretchWindow(s, 3, 2)
	for i := range s.facts.Windows {
		s.facts.Windows[i].Events = 2
	}
	s.facts.Windows[5].Events = 4
	assert.Equal(t, report.NotShown, statuses(s.all())["eager-times"])
}

func TestSession_ShortKernels_HaveTheLimitOfTheirStamps(t *testing.T) {
	s := right("eager")
	stretchKind(s, "add", 1.0175) // 1 % and 32 ns of 4,000
	assert.Equal(t, report.StandIn, statuses(s.all())["eager-times"])
	assert.Contains(t, textOf(t, s.all(), "eager-times"), "add, +1.75 %, limit 1.80 %")
}

// The other profiler's own windows show how much a kind varies.
func TestSession_AKindThatVaries_DoesNotDecide(t *testing.T) {
	vary := func(spread float64) *session {
		s := right("eager")
		s.traces[4]["adam"] = ran{count: steps, ns: uint64(steps * 20_000 * (1 + spread))}
		return s
	}
	assert.Equal(t, report.StandIn, statuses(vary(0.02).all())["eager-times"], "1 % off, 2 % between windows")
	checks := vary(0.06).all()
	assert.Equal(t, report.NotShown, statuses(checks)["eager-times"], "3 % off, 6 % between windows")
	assert.Contains(t, textOf(t, checks, "eager-times"), "adam, -2.91 %, limit 1.16 % (1, stamps of 32 ns 0.16), spread of equal windows 6.00 %")
	s := vary(0.13)
	stretchKind(s, "gemm", 1.009)
	assert.Equal(t, report.NotShown, statuses(s.all())["eager-times"], "also where another kind is closer to its limit")
	s = vary(0.13)
	stretchKind(s, "adam", 0.5)
	stretchKind(s, "gemm", 1.1)
	assert.Equal(t, report.Failed, statuses(s.all())["eager-times"])
}

func TestSession_NotAlone_ComparesNoTimes(t *testing.T) {
	for _, by := range []float64{1, 1.05} {
		s := right("eager")
		s.company = "compile is not ready"
		stretch(s, by)
		checks := s.all()
		assert.Equal(t, report.NotShown, statuses(checks)["eager-times"])
		assert.Contains(t, textOf(t, checks, "eager-times"), "not alone: compile is not ready")
		assert.Equal(t, report.StandIn, statuses(checks)["eager-counts"])
	}
}

func TestFirst_AProfilerBeforeUs_MustLeaveAWholeWindow(t *testing.T) {
	assert.Equal(t, report.StandIn, right("eager").first().Status)
	s := right("eager")
	loseSentinels(s, 2)
	assert.Equal(t, report.Failed, s.first().Status)
	s = right("eager")
	s.ring.kernels = nil
	emptyTraces(s)
	c := s.first()
	assert.Equal(t, report.Failed, c.Status)
	assert.Contains(t, c.Text, "the other profiler recorded no kernel")
}

func TestSession_CUDAEvents_AreInTheText(t *testing.T) {
	s := right("eager")
	assert.NotContains(t, textOf(t, s.all(), "eager-times"), "CUDA events")
	for i := range s.facts.Windows {
		s.facts.Windows[i].Events = 2
	}
	s.facts.Windows[2].Events, s.facts.Windows[4].Events = 3, 4
	assert.Contains(t, textOf(t, s.all(), "eager-times"), "by CUDA events its steps take 2.000 ms, and 3.500 under the other profiler")
}

func TestSession_HalfAPercent_IsRight(t *testing.T) {
	s := right("eager")
	stretch(s, 1.005)
	assert.Equal(t, report.StandIn, statuses(s.all())["eager-times"])
}

func TestSession_ARefusedResume_NamesTheSubscription(t *testing.T) {
	s := right("eager")
	s.ring.kernels = s.ring.kernels[:len(s.ring.kernels)/2]
	s.facts.Windows[2].Resume = []int{39, 39}
	assert.Contains(t, textOf(t, s.all(), "eager-resume"), "refused 2 times (39: another client holds CUPTI's one subscription)")
}

func TestSession_SentinelsOfTheOtherLost_StayRight(t *testing.T) {
	s := right("eager")
	s.traces[2]["at::cuda::spin_kernel"] = ran{count: sentinels - 2, ns: 1}
	checks := s.all()
	assert.Equal(t, report.StandIn, statuses(checks)["eager-counts"])
	assert.InDelta(t, 2, checks[0].Figures[2].Value, 0)
}

func TestExit_LastWindow_MustBeComplete(t *testing.T) {
	alone := func() *session {
		s := right("eager")
		s.facts.Windows, s.traces = s.facts.Windows[:2], s.traces[:2]
		s.ring.kernels = s.ring.kernels[:len(s.ring.kernels)/2]
		return s
	}
	assert.Equal(t, report.StandIn, alone().exit().Status)
	s := alone()
	drop(s, len(s.ring.kernels)-1)
	assert.Equal(t, report.Failed, s.exit().Status)
	s = alone()
	loseSentinels(s, 1)
	assert.Equal(t, report.Failed, s.exit().Status)
	s = alone()
	s.ended = false
	assert.Equal(t, report.Failed, s.exit().Status)
}

// unpausedSession is of a profiler that did not pause us, and left us silent.
func unpausedSession() *session {
	s := right("eager")
	kinds := []string{"ours", "theirs-unpaused", "ours", "ours", "theirs"}
	trace := tallyOf(kernelsFrom(apart, steps, false))
	s.facts.Windows, s.traces = s.facts.Windows[:len(kinds)], make([]tally, len(kinds))
	s.lacks = make([]int, len(kinds))
	for i, kind := range kinds {
		s.facts.Windows[i].Kind = kind
		if kind != "ours" {
			s.traces[i] = tally{}
			for name, r := range trace {
				s.traces[i][name] = r
			}
		}
	}
	s.ring.kernels = kernelsFrom(apart, steps, false)
	return s
}

func TestUnpaused_ACompleteTraceAndSilence_AreRight(t *testing.T) {
	assert.Equal(t, map[string]report.Status{"unpaused-trace": report.StandIn, "unpaused-after": report.StandIn}, statuses(unpausedSession().unpaused()))
}

func TestUnpaused_ATraceThatLacksKernels_Fails(t *testing.T) {
	s := unpausedSession()
	s.traces[1]["gemm"] = ran{count: 1, ns: 50_000}
	checks := s.unpaused()
	assert.Equal(t, report.Failed, statuses(checks)["unpaused-trace"])
	assert.Contains(t, textOf(t, checks, "unpaused-trace"), "recorded 7 of 12 kernels")
}

func TestUnpaused_HalfAWindowAfterIt_Fails(t *testing.T) {
	s := unpausedSession()
	more := kernelsFrom(3*apart, steps, false)
	s.ring.kernels = append(s.ring.kernels, more[:len(more)-2]...)
	assert.Equal(t, report.Failed, statuses(s.unpaused())["unpaused-after"])

	s = unpausedSession()
	s.ring.kernels = append(s.ring.kernels, kernelsFrom(3*apart, steps, false)[60:]...)
	assert.Equal(t, report.Failed, statuses(s.unpaused())["unpaused-after"], "without its sentinels")
}

func TestUnpaused_NoKernels_ShowNothing(t *testing.T) {
	s := unpausedSession()
	s.ring.kernels = nil
	emptyTraces(s)
	checks := s.unpaused()
	assert.Equal(t, map[string]report.Status{"unpaused-trace": report.Failed, "unpaused-after": report.Failed}, statuses(checks))
	assert.Contains(t, textOf(t, checks, "unpaused-trace"), "recorded no kernel")

	s = unpausedSession()
	s.ring.kernels = s.ring.kernels[:sentinels]
	emptyTraces(s)
	assert.Equal(t, report.Failed, statuses(s.unpaused())["unpaused-after"], "sentinels alone")
}

func TestTeardown_OurEndIsDocumented_HalfAWindowIsWrong(t *testing.T) {
	assert.Equal(t, report.StandIn, right("eager").teardown().Status)

	s := right("eager")
	s.ring.kernels = s.ring.kernels[:len(s.ring.kernels)/2] // the windows before
	c := s.teardown()
	assert.Equal(t, report.NotShown, c.Status, c.Text)

	more := kernelsFrom(4*apart, steps, false)
	s.ring.kernels = append(s.ring.kernels, more[:len(more)-2]...)
	assert.Equal(t, report.Failed, s.teardown().Status)
	s.traces[2], s.traces[4] = nil, nil
	assert.Equal(t, report.Failed, s.teardown().Status)

	s = right("eager")
	s.ring.kernels = nil
	emptyTraces(s)
	assert.Equal(t, report.Failed, s.teardown().Status, "neither has a kernel")
	s = right("eager")
	s.ring.kernels = slices.DeleteFunc(s.ring.kernels, func(k kernel) bool { return k.start > 4*apart && !isSentinel(k.name) })
	assert.Equal(t, report.Failed, s.teardown().Status, "sentinels are half a window, too")
}

func TestDevice_EachSourceThatIsKnown_MustAgree(t *testing.T) {
	const uuid, other = "GPU-4b1c0f9e-0000-1111-2222-333344445555", "GPU-4b1c0f9e-0000-1111-2222-333344445556"
	for _, tt := range []struct {
		name, ring string
		by         map[string]string
		want       report.Status
		text       string
	}{
		{"one source", uuid, map[string]string{"PyTorch": uuid, "nvidia-smi": ""}, report.StandIn, "as PyTorch does"},
		{"two sources", uuid, map[string]string{"PyTorch": uuid, "nvidia-smi": uuid + "\n"}, report.StandIn, "as PyTorch and nvidia-smi do"},
		{"two devices", uuid, map[string]string{"nvidia-smi": other + "\n" + uuid + "\n"}, report.StandIn, "as nvidia-smi does"},
		{"PyTorch writes no prefix", uuid, map[string]string{"PyTorch": "4b1c0f9e-0000-1111-2222-333344445555"}, report.StandIn, "as PyTorch does"},
		{"another", uuid, map[string]string{"PyTorch": other}, report.Failed, "PyTorch says " + other},
		{"one of two is another", uuid, map[string]string{"PyTorch": uuid, "nvidia-smi": other}, report.Failed, "nvidia-smi says " + other},
		{"a part of it", uuid[:20], map[string]string{"PyTorch": uuid}, report.Failed, "PyTorch says " + uuid},
		{"no source", uuid, map[string]string{"PyTorch": "GPU-", "nvidia-smi": ""}, report.NotShown, "neither"},
		{"the ring has none", "", map[string]string{"PyTorch": uuid}, report.Failed, "names a GPU without a UUID"},
	} {
		s := right("eager")
		s.ring.gpus = []ring.GPU{{Index: 1, UUID: tt.ring}}
		c := s.device(tt.by)
		assert.Equal(t, tt.want, c.Status, tt.name)
		assert.Contains(t, c.Text, tt.text, tt.name)
	}
}

func TestDevice_KernelsWithoutAGPU_Fail(t *testing.T) {
	by := map[string]string{"PyTorch": "GPU-4b1c0f9e"}
	s := right("eager")
	s.ring.gpus = []ring.GPU{{Index: 1, UUID: "GPU-4b1c0f9e"}}
	s.ring.kernels[9].GPU = 0
	assert.Equal(t, report.Failed, s.device(by).Status)
	s.ring.kernels = nil
	assert.Equal(t, report.Failed, s.device(by).Status, "no kernel")
	s.ring.gpus = nil
	assert.Equal(t, report.Failed, s.device(by).Status, "no GPU")
}
