package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/straggler"
)

// evidence is what the report reads of lockstep.finding.evidence. Absent fields
// are left out of the report: evidence of other kinds has other fields.
type evidence struct {
	Steps        int64         `json:"steps"`
	Meetings     int64         `json:"meetings"`
	LastArrivals int64         `json:"last_arrivals"`
	FalseAlarm   *float64      `json:"false_alarm"`
	ExcessShare  *float64      `json:"excess_share"`
	PlaceExcess  *float64      `json:"place_excess_seconds"`
	NextRanks    []int64       `json:"next_ranks"`
	MissingRanks []int64       `json:"missing_ranks"`
	MissingCount int           `json:"missing_ranks_count"`
	LoweredBy    []string      `json:"confidence_lowered_by"`
	Decisive     *evidenceMeet `json:"decisive"`
}

type evidenceMeet struct {
	Step       int64    `json:"step"`
	Collective string   `json:"collective"`
	Comm       string   `json:"comm_id"`
	Wait       *float64 `json:"wait_seconds"`
	Gap        *float64 `json:"gap_to_second_last_seconds"`
}

// readEvidence reads the evidence; what is no JSON of this shape is shown as
// it is by the caller.
func readEvidence(f *model.Finding) (ev evidence, ok bool) {
	return ev, json.Unmarshal([]byte(f.Evidence), &ev) == nil
}

func (p *printer) verdict(j *straggler.JobReport, i int) {
	v := &j.Verdicts[i]
	p.finding(&v.Finding, i, len(j.Verdicts))
	p.timeline(v.Decisive)
	p.line("")
}

func (p *printer) finding(f *model.Finding, i, of int) {
	ev, ok := readEvidence(f)
	for _, l := range wrap(fmt.Sprintf("Finding %d of %d: %s", i+1, of, headline(f)), p.width()) {
		p.line("%s", p.paint(red, l))
	}
	p.optional("where", where(f, &ev))
	p.optional("wait caused", waitText(f, &ev))
	p.optional("cost", costText(f, &ev))
	p.optional("next", nextText(&ev))
	p.optional("when", whenText(f))
	p.field("confidence", confidenceText(f, &ev))
	p.optional("missing", missingText(&ev))
	p.optional("what to do", actionText(f))
	if !ok && f.Evidence != "" {
		p.field("evidence", clean(f.Evidence))
	}
}

func (p *printer) optional(label, text string) {
	if text != "" {
		p.field(label, text)
	}
}

func headline(f *model.Finding) string {
	if f.Kind != model.FindingStraggler {
		return clean(strings.TrimSpace(fmt.Sprintf("%s: %s %s", place(f), f.Kind, f.Class)))
	}
	text := place(f) + " makes the others wait (class " + f.Class
	if meaning := classMeaning(f.Class); meaning != "" {
		text += ": " + meaning
	}
	if f.Cause != "" && f.Cause != "unknown" {
		text += "; cause: " + f.Cause
	}
	return clean(text + ")")
}

func place(f *model.Finding) string {
	text := "job " + shortName(f.JobID)
	switch {
	case f.Rank.OK:
		text = fmt.Sprintf("rank %d", f.Rank.V)
	case len(f.Ranks) > 0:
		text = ranks(f.Ranks, int(f.RanksCount.Or(int64(len(f.Ranks)))))
	}
	if f.Host != "" {
		text += " on " + shortName(f.Host)
	}
	return text
}

func classMeaning(class string) string {
	switch class {
	case model.ClassCompute:
		return "its own computation takes longer than its peers'"
	case model.ClassHost:
		return "its host launches work late"
	}
	return ""
}

// where names the operation, and what shows that it matters.
func where(f *model.Finding, ev *evidence) string {
	var parts []string
	if f.Op != "" {
		part := fmt.Sprintf("%q", shortName(f.Op))
		if ev.PlaceExcess != nil {
			part += fmt.Sprintf(", %s per step more than its peers' median", Seconds(*ev.PlaceExcess))
		}
		parts = append(parts, part)
	}
	if d := ev.Decisive; d != nil && d.Collective != "" {
		part := fmt.Sprintf("it shows best in %s of step %d", shortName(d.Collective), d.Step)
		if d.Comm != "" {
			part += fmt.Sprintf(" (communicator %s)", shortName(d.Comm))
		}
		parts = append(parts, part)
	} else if f.CommID != "" {
		parts = append(parts, "communicator "+shortName(f.CommID))
	}
	return clean(strings.Join(parts, "; "))
}

func waitText(f *model.Finding, ev *evidence) string {
	if !f.WaitCaused.OK {
		return ""
	}
	text := Seconds(f.WaitCaused.V) + " per step, summed over the others"
	if f.WaitCausedShare.OK {
		text += fmt.Sprintf(": %s of all wait", Share(f.WaitCausedShare.V))
	}
	if ev.Meetings > 0 {
		text += fmt.Sprintf("; last in %d of %d collectives", ev.LastArrivals, ev.Meetings)
	}
	return text
}

func costText(f *model.Finding, ev *evidence) string {
	if !f.CostSeconds.OK {
		return ""
	}
	text := Seconds(f.CostSeconds.V) + " per step"
	if f.CostShare.OK {
		text += fmt.Sprintf(" (%s of the step)", Share(f.CostShare.V))
	}
	text += " is all that mending this " + mended(f) + " alone would save"
	if d := ev.Decisive; d != nil && d.Gap != nil {
		text += fmt.Sprintf("; in the collective that shows it best the second-last comes %s before it", Seconds(*d.Gap))
	}
	if f.CostJoint.OK && f.CostJoint.V > f.CostSeconds.V {
		text += fmt.Sprintf("; mending all findings together saves %s", Seconds(f.CostJoint.V))
	}
	return text
}

func mended(f *model.Finding) string {
	if f.Rank.OK {
		return "rank"
	}
	return "place"
}

// nextText says who would be last in the decisive collective, and no other: who
// would be in the whole step, the evidence does not say.
func nextText(ev *evidence) string {
	if len(ev.NextRanks) == 0 {
		return ""
	}
	text := ranks(ev.NextRanks, len(ev.NextRanks)) + " would be last once it is mended"
	if ev.Decisive != nil {
		text = "in that collective " + text
	}
	return text
}

func whenText(f *model.Finding) string {
	if !f.StepFirst.OK || !f.StepLast.OK {
		return ""
	}
	text := fmt.Sprintf("steps %d to %d", f.StepFirst.V, f.StepLast.V)
	if f.StepFirst.V == f.StepLast.V {
		text = fmt.Sprintf("step %d", f.StepFirst.V)
	}
	if f.BeforeWindow {
		text += "; the cause precedes the recording"
	}
	return text
}

func confidenceText(f *model.Finding, ev *evidence) string {
	text := fmt.Sprintf("%.2f of 1", f.Confidence)
	if len(ev.LoweredBy) > 0 {
		text += "; lowered by: " + clean(strings.Join(ev.LoweredBy, "; "))
	}
	return text
}

// actionText shortens the operation's name, which an action may repeat.
func actionText(f *model.Finding) string {
	if short := shortName(f.Op); short != f.Op {
		return clean(strings.ReplaceAll(f.Action, f.Op, short))
	}
	return clean(f.Action)
}

func missingText(ev *evidence) string {
	if len(ev.MissingRanks) == 0 {
		return ""
	}
	return ranks(ev.MissingRanks, max(ev.MissingCount, len(ev.MissingRanks))) + " not seen"
}
