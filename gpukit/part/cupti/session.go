// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/ring"
	"github.com/lockstep-otel/lockstep/internal/stats"
)

// session is one process in which windows were recorded by us and by another profiler.
type session struct {
	mode   string
	facts  *facts
	ring   *record
	traces []tally // by window; nil: no trace
	lacks  []int   // by window: what is in the trace without its launch
	right  report.Status
	ended  bool // the process ended with status 0
	// company names what else used the device; empty where the process was alone.
	company string
}

// sentinels is how many begin each window.
const sentinels = 64

var errNoRing = errors.New("read ring: got none of the program; want one: the library was not loaded, or could not make it")

// open reads what a program left.
func open(ctx context.Context, g *program, right report.Status) (*session, error) {
	if g.ring == nil {
		return nil, errNoRing
	}
	if g.ring.err != nil {
		return nil, fmt.Errorf("read ring: %w", g.ring.err)
	}
	s := &session{mode: g.mode, facts: &g.facts, ring: g.ring, traces: make([]tally, len(g.Windows)), lacks: make([]int, len(g.Windows)), right: right, ended: g.err == nil, company: g.company}
	for i, w := range g.Windows {
		if w.Trace == "" {
			continue
		}
		var err error
		if s.traces[i], s.lacks[i], err = readTrace(ctx, filepath.Join(g.folder, w.Trace), maxTrace); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *session) check(name string, ok bool, text string, figures ...report.Figure) report.Check {
	status := s.right
	if !ok {
		status = report.Failed
	}
	return report.Check{Name: name, Status: status, Text: text, Figures: figures}
}

// seen is what one recorder saw of a window.
type seen struct {
	window    *window
	tally     tally
	sentinels int
	kernels   []kernel // ours only
	without   int      // theirs only: without launch
}

// empty reports whether nothing of the window was recorded.
func (w seen) empty() bool { return len(w.tally) == 0 && w.sentinels == 0 }

// lacks returns how what we recorded of a window differs from another; of the sentinels
// none may be missing, since they are the first that a recorder loses.
func (w seen) lacks(reference seen) []string {
	d := differentCounts(w.tally, reference.tally)
	if w.sentinels != sentinels {
		d = append([]string{fmt.Sprintf("%d of %d sentinels, which begin a window", w.sentinels, sentinels)}, d...)
	}
	return d
}

// whole reports whether we recorded all of a window.
func (w seen) whole(reference seen) bool { return len(w.lacks(reference)) == 0 }

// noReference is the text of a check that has nothing to compare ours with.
const noReference = "the other profiler recorded no kernel; want some to compare ours with"

// ours returns what we recorded in our windows before the first of another profiler,
// and in those after it.
func (s *session) ours() (before, after []seen) {
	theirs := false
	for i := range s.facts.Windows {
		w := &s.facts.Windows[i]
		if w.Kind != "ours" {
			theirs = true
			continue
		}
		one := seen{window: w}
		one.tally, one.kernels = s.ring.window(w.Begin, w.End)
		one.sentinels = one.tally.take()
		if theirs {
			after = append(after, one)
		} else {
			before = append(before, one)
		}
	}
	return before, after
}

// theirs returns what the other profiler recorded in windows of a kind.
func (s *session) theirs(kind string) []seen {
	var out []seen
	for i := range s.facts.Windows {
		if w := &s.facts.Windows[i]; w.Kind == kind && s.traces[i] != nil {
			one := seen{window: w, tally: maps.Clone(s.traces[i]), without: s.lacks[i]}
			one.sentinels = one.tally.take()
			out = append(out, one)
		}
	}
	return out
}

func tallies(windows []seen) []tally {
	out := make([]tally, len(windows))
	for i := range windows {
		out[i] = windows[i].tally
	}
	return out
}

// all returns the checks of a mode.
func (s *session) all() []report.Check {
	before, after := s.ours()
	theirs := s.theirs("theirs")
	if len(before) == 0 || len(theirs) == 0 {
		return []report.Check{s.check(s.mode+"-counts", false, fmt.Sprintf("got %d windows of ours and %d of the other profiler; want both", len(before), len(theirs)))}
	}
	return []report.Check{
		s.counts(before, theirs), s.times(append(complete(after, theirs[0]), before...), theirs), s.launches(before), s.calls(theirs), s.names(before), s.drops(), s.resumes(s.mode+"-resume", after, theirs[0]),
	}
}

// complete returns the windows with the counts of another.
func complete(windows []seen, as seen) []seen {
	return slices.DeleteFunc(slices.Clone(windows), func(w seen) bool { return len(differentCounts(w.tally, as.tally)) > 0 })
}

// counts compares every window with the first of the other profiler.
func (s *session) counts(ours, theirs []seen) report.Check {
	name := s.mode + "-counts"
	reference := theirs[0].tally
	kernels, copies, sets, _ := reference.sums()
	figures := []report.Figure{{Name: "kernels in a window", Value: float64(kernels), Unit: "1"}, {Name: "kinds", Value: float64(len(reference)), Unit: "1"}}
	if kernels == 0 {
		return s.check(name, false, noReference)
	}
	for i, w := range theirs[1:] {
		if d := differentCounts(w.tally, reference); len(d) > 0 {
			return s.check(name, false, fmt.Sprintf("windows of the other profiler differ, so that the work was not the same: window %d has %s of its first", i+2, few(d)), figures...)
		}
	}
	for i, w := range ours {
		if d := differentCounts(w.tally, reference); len(d) > 0 {
			return s.check(name, false, fmt.Sprintf("our window %d differs from the other profiler's in %d kinds: %s", i+1, len(d), few(d)), figures...)
		}
		if w.sentinels != sentinels {
			return s.check(name, false, fmt.Sprintf("our window %d has %d of %d sentinels", i+1, w.sentinels, sentinels), figures...)
		}
	}
	lost := 0
	for _, w := range theirs {
		lost += sentinels - w.sentinels
	}
	figures = append(figures, report.Figure{Name: "sentinels that the other profiler lost", Value: float64(lost), Unit: "1"})
	return s.check(name, true, fmt.Sprintf("%d kernels, %d copies and %d sets of %d kinds in a window of %d steps: the same, kind by kind, in %d windows of ours and %d of the other profiler",
		kernels, copies, sets, len(reference), theirs[0].window.Steps, len(ours), len(theirs)), figures...)
}

// times compares device times of all, and of each kind with a share of worstShare.
func (s *session) times(ours, theirs []seen) report.Check {
	name := s.mode + "-times"
	t := compareTimes(tallies(ours), tallies(theirs), min(spreadOf(totals(tallies(ours))), spreadOf(events(ours))))
	figures := []report.Figure{
		{Name: "device time of a window", Value: t.ours / 1e6, Unit: "ms"},
		{Name: "of the other profiler", Value: t.theirs / 1e6, Unit: "ms"},
		{Name: "difference", Value: 100 * t.difference, Unit: "%"},
		{Name: "difference of the worst kind", Value: 100 * t.worst.difference, Unit: "%"},
		{Name: "spread between windows of one recorder", Value: 100 * t.spread, Unit: "%"},
	}
	if t.theirs == 0 {
		return s.check(name, false, noReference, figures...)
	}
	text := fmt.Sprintf("device time of a window: %.3f ms, %+.2f %% of the other profiler's, limit %.0f %%; worst kind with a share of %.0f %% or more: %s",
		t.ours/1e6, 100*t.difference, 100*maxTimes, 100*worstShare, t.worst.describe())
	if a, b := byEvents(ours), byEvents(theirs); a > 0 && b > 0 {
		text += fmt.Sprintf("; by CUDA events its steps take %.3f ms, and %.3f under the other profiler", a, b)
	}
	verdict := t.judge()
	switch {
	case s.company != "":
		return report.Check{Name: name, Status: report.NotShown, Figures: figures, Text: notAlone(s.company) + text}
	case verdict == vague:
		return report.Check{
			Name: name, Status: report.NotShown, Figures: figures,
			Text: text + fmt.Sprintf("; equal windows differ by as much (all together by %.2f %%), so that this machine cannot decide", 100*t.spread),
		}
	}
	return s.check(name, verdict == within, text, figures...)
}

// notAlone begins the text of what is not to be trusted.
func notAlone(company string) string { return "not alone: " + company + "; " }

// events returns what windows took by CUDA's events, ms.
func events(windows []seen) []float64 {
	out := make([]float64, len(windows))
	for i, w := range windows {
		out[i] = w.window.Events
	}
	return out
}

// byEvents returns what windows took by CUDA's events, ms, the median: it depends on no
// recorder's clock, but has the gaps between kernels, too.
func byEvents(windows []seen) float64 {
	return stats.MedianOf(events(windows))
}

// launches checks that each kernel has the call that launched it, and kernels of a
// graph its id.
func (s *session) launches(ours []seen) report.Check {
	var all, without, inGraph, wrong int
	graphs := map[uint32]bool{}
	for _, w := range ours {
		for _, k := range w.kernels {
			all++
			if !k.Launched {
				without++
			}
			if k.Graph {
				inGraph++
				graphs[k.GraphID] = true
			}
			if k.Graph != (k.GraphID != 0) || (k.Launched && k.launch > k.start+k.bound) {
				wrong++
			}
		}
	}
	text := fmt.Sprintf("%d of %d kernels, copies and sets are without their launch; %d are of %d graphs", without, all, inGraph, len(graphs))
	if wrong > 0 {
		text += fmt.Sprintf("; %d contradict themselves (graph, or start before the launch)", wrong)
	}
	ok := all > 0 && without == 0 && wrong == 0 && (s.mode == "graph") == (inGraph > 0)
	return s.check(s.mode+"-launches", ok, text, report.Figure{Name: "without launch", Value: float64(without), Unit: "1"})
}

// maxWithout is the share of a trace that may be without its launch: a pause that
// leaves calls switched off for the other profiler loses all of a kind.
const maxWithout = 0.01

// calls checks that the other profiler has the calls that launched what it recorded.
func (s *session) calls(theirs []seen) report.Check {
	all, without := 0, 0
	for _, w := range theirs {
		kernels, copies, sets, _ := w.tally.sums()
		all, without = all+kernels+copies+sets+w.sentinels, without+w.without
	}
	return s.check(s.mode+"-profiler-launches", all > 0 && float64(without) <= maxWithout*float64(all),
		fmt.Sprintf("%d of %d kernels, copies and sets of the other profiler, which we pause for, are without their launch", without, all))
}

func (s *session) names(ours []seen) report.Check {
	var kernels, unnamed int
	cut := map[string]bool{}
	for _, w := range ours {
		for _, k := range w.kernels {
			if k.Copy || k.Set {
				continue
			}
			kernels++
			if k.name == "" {
				unnamed++
			}
			if len(k.name) >= ringName-3 {
				cut[k.name] = true
			}
		}
	}
	text := fmt.Sprintf("%d of %d kernels have no name; %d different names, %d cut at %d bytes, %d shortened for want of room", unnamed, kernels, s.ring.strings, len(cut), ringName, s.ring.drops[dropNames])
	return s.check(s.mode+"-names", kernels > 0 && unnamed == 0, text, report.Figure{Name: "names cut", Value: float64(len(cut)), Unit: "1"})
}

// Reasons among the drops.
const (
	dropNames   = 19
	dropsCUPTI  = 20 // the first of CUPTI's
	dropsBehind = 25
)

func (s *session) drops() report.Check {
	var texts []string
	for i := dropsCUPTI; i < dropsBehind; i++ {
		if n := s.ring.drops[i]; n > 0 {
			texts = append(texts, fmt.Sprintf("%s %d", ring.DropName(i), n))
		}
	}
	if n := s.ring.counts.Lost; n > 0 {
		texts = append(texts, fmt.Sprintf("records lost %d", n))
	}
	if n := s.ring.unplaced(); n > 0 {
		text := fmt.Sprintf("kernels whose times cannot be put on the host's clock %d", n)
		if rate := ticks(s.ring.clocks); rate != 1 {
			text += fmt.Sprintf(" (CUPTI's clock ran at %.3f per ns)", rate)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 && len(s.ring.kernels) == 0 {
		return s.check(s.mode+"-drops", false, "the ring has no kernel; want some, of which none was dropped")
	}
	if len(texts) == 0 {
		return s.check(s.mode+"-drops", true, fmt.Sprintf("nothing was dropped of %d kernels, copies and sets of the whole run", len(s.ring.kernels)))
	}
	return s.check(s.mode+"-drops", false, fmt.Sprintf("of %d records of the whole run: %s", len(s.ring.kernels), strings.Join(texts, ", ")))
}

// resumes checks that what runs after another profiler's window is recorded as before.
func (s *session) resumes(name string, after []seen, reference seen) report.Check {
	if len(after) == 0 {
		return s.check(name, false, "got no window of ours after the other profiler's; want some")
	}
	if kernels, _, _, _ := reference.tally.sums(); kernels == 0 {
		return s.check(name, false, noReference)
	}
	state := fmt.Sprintf("%s after torch.profiler's window; CUPTI: %s", resumed(s.facts.Windows), after[len(after)-1].window.cuptiStatus())
	for i, w := range after {
		d := w.lacks(reference)
		if len(d) == 0 {
			continue
		}
		kernels, _, _, _ := w.tally.sums()
		text := fmt.Sprintf("%s; our window %d after it has %d kernels", state, i+1, kernels)
		if n := s.ring.unplaced(); n > 0 {
			text += fmt.Sprintf(", %d more are on a clock of %.3f ticks per ns, which torch.profiler has given to CUPTI", n, ticks(s.ring.clocks))
		}
		return s.check(name, false, text+": "+few(d))
	}
	return s.check(name, true, fmt.Sprintf("%s; %d windows after it are complete", state, len(after)))
}

// resumed returns how the calls of resume ended, after the first window of another.
func resumed(windows []window) string {
	for i := range windows {
		if len(windows[i].Resume) > 0 {
			return windows[i].resumeText()
		}
	}
	return "not asked"
}
