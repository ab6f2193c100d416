// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// first checks a process in which torch.profiler began before us.
func (s *session) first() report.Check {
	_, after := s.ours()
	theirs := s.theirs("theirs")
	if len(after) == 0 || len(theirs) == 0 {
		return s.check("profiler-first", false, "got no windows; want one of each after the first profiler's")
	}
	c := s.resumes("profiler-first", after[:1], theirs[0])
	c.Text = "torch.profiler was active as CUDA began; " + c.Text
	return c
}

// unpaused checks a profiler that begins without a pause of ours: what it got, and what
// became of us.
func (s *session) unpaused() []report.Check {
	const name = "unpaused-trace"
	before, after := s.ours()
	unpaused, paused := s.theirs("theirs-unpaused"), s.theirs("theirs")
	if len(before) == 0 || len(after) < 2 || len(unpaused) == 0 || len(paused) == 0 {
		return []report.Check{s.check(name, false, fmt.Sprintf("got %d windows of ours before and %d after, %d traces without and %d with a pause; want 1, 2, 1 and 1",
			len(before), len(after), len(unpaused), len(paused)))}
	}
	silent := s.silent(before[0], after, paused[0])
	want, _, _, _ := paused[0].tally.sums()
	if want == 0 {
		return []report.Check{s.check(name, false, noReference), silent}
	}
	kernels, _, _, _ := unpaused[0].tally.sums()
	text := fmt.Sprintf("torch.profiler that does not pause us recorded %d of %d kernels and %d of %d sentinels", kernels, want, unpaused[0].sentinels, paused[0].sentinels)
	d := differentCounts(unpaused[0].tally, paused[0].tally)
	if len(d) > 0 {
		text += fmt.Sprintf("; it differs from a window with a pause in %d kinds", len(d))
	}
	return []report.Check{s.check(name, len(d) == 0, text), silent}
}

// silent reports what we recorded after it. We may be silent, but must not record half a
// window.
func (s *session) silent(before seen, after []seen, reference seen) report.Check {
	const name = "unpaused-after"
	want, _, _, _ := reference.tally.sums()
	if want == 0 {
		return s.check(name, false, noReference)
	}
	asked := "not asked"
	if r := s.facts.Resumed; r != nil {
		asked = strconv.Itoa(*r)
	}
	var windows []string
	ok := before.whole(reference)
	had, _, _, _ := before.tally.sums()
	for _, w := range after {
		kernels, _, _, _ := w.tally.sums()
		windows = append(windows, strconv.Itoa(kernels))
		ok = ok && (w.empty() || w.whole(reference))
	}
	return s.check(name, ok, fmt.Sprintf("before it we recorded %d of %d kernels of a window, after it %s (the second after asking to resume: result %s); CUPTI: %s; states: %s",
		had, want, strings.Join(windows, " and "), asked, after[0].window.cuptiStatus(), strings.Join(s.ring.states, ", ")))
}

// teardown checks a process in which PyTorch detaches CUPTI after its profiler's window.
// That ends our recording, too, as inject/cupti/README.md has it: half a window is wrong.
func (s *session) teardown() report.Check {
	const name = "resume-after-teardown"
	theirs := s.theirs("theirs")
	if len(theirs) == 0 {
		return s.check(name, false, "got no window of the other profiler; want some")
	}
	if kernels, _, _, _ := theirs[0].tally.sums(); kernels == 0 {
		return s.check(name, false, noReference)
	}
	_, after := s.ours()
	c := s.resumes(name, after, theirs[0])
	if c.Status != report.Failed || len(after) == 0 || slices.ContainsFunc(after, func(w seen) bool { return !w.empty() }) {
		return c
	}
	return report.Check{Name: name, Status: report.NotShown, Text: "as documented, PyTorch's TEARDOWN_CUPTI=1 ended our recording, too: " + c.Text}
}

// exit checks that the last window, which the end of the process follows at once, is
// there as the first one.
func (s *session) exit() report.Check {
	before, _ := s.ours()
	if len(before) < 2 {
		return s.check("exit", false, fmt.Sprintf("got %d windows of ours; want 2", len(before)))
	}
	last := before[len(before)-1]
	d := last.lacks(before[0])
	kernels, _, _, _ := before[0].tally.sums()
	if len(d) > 0 {
		return s.check("exit", false, fmt.Sprintf("the last window before the end of the process lacks some: %s (the second number is of the first window)", few(d)))
	}
	end := "the process ended with status 0"
	if !s.ended {
		end = "the process did not end with status 0"
	}
	return s.check("exit", kernels > 0 && s.ended, fmt.Sprintf("%s, and the %d kernels of its last window were handed over", end, kernels))
}

// maxConversion is how far CUPTI may be off, ns, as it converts stamps of the device,
// whose clock drifts, to the host's. A wrong clock of ours is off by milliseconds or more.
const maxConversion = 20_000

// brackets checks kernels between two stamps of the host each.
func (s *session) brackets() report.Check {
	b := checkBrackets(s.ring.kernels, s.facts.Brackets)
	text := fmt.Sprintf("%d of %d kernels lie between their call and what the host saw; the narrowest bracket allows CUPTI's clock an error of %.1f us", b.kernels-b.outside, len(s.facts.Brackets), b.tightest/1000)
	if b.outside > 0 {
		text += fmt.Sprintf("; %d lie outside, by up to %.1f us, of which readings of the clock explain %.1f; CUPTI's own conversion of the device's stamps may be off by %.0f",
			b.outside, float64(b.worst)/1000, float64(b.bound)/1000, float64(maxConversion)/1000)
	}
	if b.missing > 0 {
		text += fmt.Sprintf("; %d have no kernel", b.missing)
	}
	return s.check("clock-brackets", len(s.facts.Brackets) > 0 && b.kernels == len(s.facts.Brackets) && b.worst <= b.bound+maxConversion, text,
		report.Figure{Name: "tightest maximum error", Value: b.tightest / 1000, Unit: "us"}, report.Figure{Name: "furthest outside", Value: float64(max(b.worst, 0)) / 1000, Unit: "us"})
}

// maxOffset is how far CUPTI's clock may be seen from REALTIME, which it follows, ns.
const maxOffset = 1e6

func (s *session) drift() report.Check {
	d := driftOf(s.ring.clocks)
	text := fmt.Sprintf("CUPTI's clock beside REALTIME: %+.1f us at first, %+.1f us at last, %.1f us at most (limit %.0f us), within %.1f us in %.0f s and %d readings; %+.3f ppm of MONOTONIC_RAW (REALTIME %+.3f); a reading takes %.2f us",
		d.first/1000, d.last/1000, d.furthest/1000, maxOffset/1000, d.widest/1000, d.seconds, d.readings, d.rate, d.realtimeRate, d.width/1000)
	if !d.nanoseconds() {
		text += "; it does not count nanoseconds"
	}
	return s.check("clock-drift", d.readings >= 2 && d.nanoseconds() && d.furthest <= maxOffset && d.widest <= maxOffset, text,
		report.Figure{Name: "change beside REALTIME", Value: (d.last - d.first) / 1000, Unit: "us"}, report.Figure{Name: "rate beside MONOTONIC_RAW", Value: d.rate, Unit: "ppm"},
		report.Figure{Name: "width of a reading", Value: d.width / 1000, Unit: "us"})
}

// device compares the GPU's id with what others call it: a line for each of their devices.
func (s *session) device(uuids map[string]string) report.Check {
	const name = "device"
	if len(s.ring.gpus) == 0 {
		return s.check(name, false, "the ring names no GPU")
	}
	got := s.ring.gpus[0].UUID
	if bareUUID(got) == "" {
		return s.check(name, false, "the ring names a GPU without a UUID")
	}
	var agree []string
	for _, by := range slices.Sorted(maps.Keys(uuids)) {
		others := slices.DeleteFunc(strings.Split(uuids[by], "\n"), func(line string) bool { return bareUUID(line) == "" })
		if len(others) == 0 {
			continue
		}
		if !slices.ContainsFunc(others, func(line string) bool { return bareUUID(line) == bareUUID(got) }) {
			return s.check(name, false, fmt.Sprintf("the ring names GPU %s; %s says %s", got, by, strings.Join(others, ", ")))
		}
		agree = append(agree, by)
	}
	unknown := 0
	for i := range s.ring.kernels {
		if s.ring.kernels[i].GPU == 0 {
			unknown++
		}
	}
	kernels := fmt.Sprintf("%d of %d kernels have none", unknown, len(s.ring.kernels))
	switch len(agree) {
	case 0:
		return report.Check{Name: name, Status: report.NotShown, Text: fmt.Sprintf("the ring names GPU %s; neither PyTorch nor nvidia-smi names one to compare; %s", got, kernels)}
	case 1:
		kernels = "does; " + kernels
	default:
		kernels = "do; " + kernels
	}
	return s.check(name, len(s.ring.kernels) > 0 && unknown == 0, fmt.Sprintf("the ring names GPU %s as %s %s", got, strings.Join(agree, " and "), kernels))
}

// bareUUID returns what tells GPUs apart of a UUID; empty where there is none.
func bareUUID(uuid string) string {
	return strings.TrimPrefix(strings.ToLower(strings.TrimSpace(uuid)), "gpu-")
}

// cost compares blocks of one process.
func (s *session) cost() report.Check {
	const name = "cost-recording"
	if n := refused(s.facts.Blocks); n > 0 {
		return s.check(name, false, fmt.Sprintf("%d of %d calls that pause and resume were not obeyed", n, len(s.facts.Blocks)))
	}
	with, without, err := blockPairs(s.facts.Blocks)
	if err == nil {
		err = s.ring.obeyed(s.facts.Blocks)
	}
	var r ratio
	if err == nil {
		r, err = pairedRatio(with, without)
	}
	if err != nil {
		return s.check(name, false, err.Error())
	}
	text := r.describe("recording, against a pause in the same process,") + fmt.Sprintf("; a step takes %.2f ms", stats.MedianOf(without)/1e6)
	if before, _ := s.ours(); len(before) > 0 {
		kernels, _, _, _ := before[0].tally.sums()
		text += fmt.Sprintf(" with %d kernels", kernels/max(before[0].window.Steps, 1))
	}
	if s.company != "" {
		text = notAlone(s.company) + text
	}
	return report.Check{Name: name, Status: r.judge(s.right, s.company), Figures: r.figures(), Text: text}
}

// costBetween compares processes that took turns.
func costBetween(name, state string, with, without [][]float64, right report.Status, company string) report.Check {
	r, err := pairedRatio(mediansOf(with), mediansOf(without))
	if err != nil {
		return report.Check{Name: name, Status: report.Failed, Text: err.Error()}
	}
	text := r.describe("the library, " + state + ", against a process without it,")
	if company != "" {
		text = notAlone(company) + text
	}
	return report.Check{Name: name, Status: r.judge(right, company), Figures: r.figures(), Text: text}
}
