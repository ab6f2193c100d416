package straggler

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// standing is a finding as it was last reported.
type standing struct {
	verdict Verdict
	dirty   bool
	told    model.Finding // as last reported
	// confirmed is how many steps the job had when the finding was last confirmed.
	confirmed int
}

// settle opens, updates and closes findings after a judgement.
func (j *job) settle(named []*candidate) {
	joint := 0.0
	if len(named) > 0 {
		all := mending{ranks: map[int64]bool{}, links: map[int64]bool{}}
		for _, c := range named {
			if c.link {
				all.links[c.rank.Rank] = true
			} else {
				all.ranks[c.rank.Rank] = true
			}
		}
		joint = float64(replay(j.window, all)) / 1e9 / float64(len(j.window))
	}
	var next []*standing
	for _, c := range named {
		if v, ok := j.verdict(c, joint); ok {
			next = append(next, j.stand(v))
		}
	}
	for _, s := range j.verdicts {
		if slices.ContainsFunc(next, s.continuedBy) {
			continue
		}
		if s.verdict.Finding.Status != model.StatusClosed {
			j.fade(s)
		}
		next = append(next, s)
	}
	j.verdicts = next
}

// fade closes a finding that was not confirmed for CleanSteps steps. Until then
// it stands: a rank near a gate must not become a new finding every few steps.
func (j *job) fade(s *standing) {
	f := &s.verdict.Finding
	if j.steps-s.confirmed < j.e.cfg.CleanSteps {
		return
	}
	f.Status, s.dirty = model.StatusClosed, true
	f.Revision++
	j.episodes++
	j.past = append(j.past, s.verdict)
	if over := len(j.past) - maxPast; over > 0 {
		j.past = slices.Clone(j.past[over:])
	}
}

// maxPast is how many closed findings of a job are kept for its report.
const maxPast = 64

func (s *standing) continuedBy(n *standing) bool {
	return n.verdict.Finding.ID == s.verdict.Finding.ID
}

// stand joins a verdict with the one that stands for the same place.
func (j *job) stand(v Verdict) *standing {
	for _, s := range j.verdicts {
		old := &s.verdict.Finding
		link := old.Class == model.ClassLink
		if old.Rank != v.Finding.Rank || link != (v.Finding.Class == model.ClassLink) || old.Status == model.StatusClosed {
			continue
		}
		v.Finding.ID, v.Finding.Revision, v.Finding.Status = old.ID, old.Revision, old.Status
		if old.StepFirst.V < v.Finding.StepFirst.V {
			v.Finding.StepFirst, v.Finding.Start = old.StepFirst, old.Start
		}
		v = s.verdict.fuller(v)
		changed := s.dirty || differs(&s.told, &v.Finding)
		if changed && !s.dirty {
			v.Finding.Revision++
			v.Finding.Status = model.StatusUpdated
		}
		return &standing{verdict: v, dirty: changed, told: s.told, confirmed: j.steps}
	}
	return &standing{verdict: v, dirty: true, confirmed: j.steps}
}

// minFuller is the share of the steps of the fullest judgement that a later one
// must rest on to replace its numbers.
const minFuller = 0.5

// fuller returns v, or where v rests on far fewer steps, as at the end of an
// episode, the former numbers with v's last step.
func (former *Verdict) fuller(v Verdict) Verdict {
	if float64(v.Steps) >= minFuller*float64(former.Steps) {
		v.Steps = max(v.Steps, former.Steps)
		return v
	}
	kept := *former
	kept.Finding.StepLast, kept.Finding.Time = v.Finding.StepLast, v.Finding.Time
	return kept
}

// differs reports whether the finding changed by more than noise.
func differs(a, b *model.Finding) bool {
	const relative, absolute = 0.1, 0.1
	return a.Class != b.Class || a.Op != b.Op || a.Cause != b.Cause || a.Link != b.Link || a.BeforeWindow != b.BeforeWindow ||
		math.Abs(a.CostSeconds.V-b.CostSeconds.V) > relative*math.Abs(a.CostSeconds.V) ||
		math.Abs(a.Confidence-b.Confidence) > absolute
}

// changed judges, and returns what changed since the last call. After the last
// step everything that moved since it was reported counts as changed.
func (j *job) changed(final bool) []Verdict {
	j.judge()
	var out []Verdict
	for _, s := range j.verdicts {
		f := &s.verdict.Finding
		if final && !s.dirty && f.StepLast != s.told.StepLast {
			f.Revision++
			f.Status = model.StatusUpdated
			s.dirty = true
		}
		if s.dirty {
			s.dirty, s.told = false, *f
			out = append(out, s.verdict)
		}
	}
	j.verdicts = slices.DeleteFunc(j.verdicts, func(s *standing) bool {
		return s.verdict.Finding.Status == model.StatusClosed
	})
	return out
}

// verdict renders a candidate that passed all gates; false where no meeting shows it.
func (j *job) verdict(c *candidate, joint float64) (Verdict, bool) {
	if c.link {
		return j.linkVerdict(c, joint)
	}
	decisive, ev := c.evidence()
	if decisive == nil {
		return Verdict{}, false
	}
	f := j.finding(c, joint)
	f.Class, f.Op, ev.PlaceExcess = j.cause(c)
	f.Cause = c.why(f.Class)
	f.ID = j.findingID("rank", c)
	f.Confidence = c.confidence(&ev)
	text, _ := json.Marshal(ev)
	f.Evidence = string(text)
	f.CommID, f.BeforeWindow = decisive.CommID, c.before >= 0.5
	f.WaitCaused, f.WaitCausedShare = model.Some(c.caused), model.Some(c.waitShare)
	f.Links = []model.SpanRef{decisive.spanOf(decisive.LastRank)}
	f.Action = action(&f, c.in.scoped(c.rank.Rank))
	return Verdict{Finding: f, Decisive: decisive, Steps: len(c.in)}, true
}

// finding returns what findings of every class have in common.
func (j *job) finding(c *candidate, joint float64) model.Finding {
	first, last := c.in[0], c.in[len(c.in)-1]
	return model.Finding{
		Time: last.end, Start: first.start, Severity: severity(c.costShare),
		JobName: j.name, JobID: j.id, Incarnation: j.incarnation,
		Kind: model.FindingStraggler, Cause: model.CauseUnknown, Status: model.StatusOpen,
		Rank: model.Some(c.rank.Rank), Host: c.rank.HostName, HWID: c.rank.HWID,
		Ranks: []int64{c.rank.Rank}, RanksCount: model.Some(int64(1)),
		StepFirst: model.Some(first.step), StepLast: model.Some(last.step),
		CostSeconds: model.Some(c.cost), CostShare: model.Some(c.costShare), CostJoint: model.Some(joint),
	}
}

func (j *job) findingID(sort string, c *candidate) string {
	return model.FindingID(j.incarnation, model.FindingStraggler, fmt.Sprintf("%s/%d", sort, c.rank.Rank), j.episodes)
}

// severity warns from a cost of 1 % of the step, as the data model has it.
func severity(costShare float64) model.Severity {
	if costShare > 0.01 {
		return model.SeverityWarn
	}
	return model.SeverityInfo
}

// action says what to do next; scoped is whether scopes of the rank were recorded.
func action(f *model.Finding, scoped bool) string {
	rank := f.Rank.V
	switch {
	case f.BeforeWindow:
		return "record more steps, beginning earlier: the rank was late when the recording began"
	case advice[f.Cause] != "":
		return fmt.Sprintf(advice[f.Cause], rank, inScope(f))
	case f.OutsideScopes() && !scoped:
		return fmt.Sprintf("look at what the host of rank %d does: data loading, garbage collection, CPU contention. No scopes of it were recorded: record them to know more", rank)
	case f.OutsideScopes():
		return fmt.Sprintf("look at what the host of rank %d does outside of any scope: data loading, garbage collection, CPU contention. Mark scopes there to know more", rank)
	case f.Class == model.ClassHost:
		return fmt.Sprintf("look at what the host of rank %d does in %q: data loading, garbage collection, CPU contention", rank, f.Op)
	}
	return fmt.Sprintf("compare %q on rank %d with its peers: clocks, throttling, kernel choice, amount of work", f.Op, rank)
}

func inScope(f *model.Finding) string {
	if f.OutsideScopes() {
		return ""
	}
	return fmt.Sprintf(" in %q", f.Op)
}

// advice is what to do next about a host that is late for a known cause; of a rank,
// and where it is.
var advice = map[string]string{
	model.CauseCompile:    "rank %d recompiles%s in every step: do its shapes or types change, is its cache lost, or is it alone without one? Log recompilations",
	model.CauseDataLoader: "rank %d waits for its data%s: compare its storage and cache, its samples' size, and its workers and their CPUs with those of its peers; more workers or more batches ahead may hide it",
	model.CauseGC:         "rank %d collects garbage%s while its peers do not: collect by hand at the same step on all ranks (gc.disable, gc.freeze), and look for what makes so many objects there",
	model.CauseCheckpoint: "rank %d is kept by a checkpoint%s: save asynchronously or share the work among ranks, and compare the speed of its storage with that of its peers",
}
