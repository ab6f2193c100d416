package otelmap

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Sentence says a finding in one sentence: the place, what it is, the operation,
// the wait it caused and, apart from it, what mending it would save.
func Sentence(f *model.Finding) string {
	var b strings.Builder
	b.WriteString(place(f))
	fmt.Fprintf(&b, ": %s", f.Kind)
	if f.Class != "" {
		fmt.Fprintf(&b, " (%s)", f.Class)
	}
	if f.Cause != "" && f.Cause != model.CauseUnknown {
		fmt.Fprintf(&b, ", cause %s", f.Cause)
	}
	switch {
	case f.OutsideScopes():
		b.WriteString(", outside of any scope")
	case f.Op != "":
		fmt.Fprintf(&b, ", at %s", f.Op)
	}
	writeNumbers(&b, f)
	if f.Class == model.ClassLink {
		b.WriteString("; which end is at fault is not decided")
	}
	if f.BeforeWindow {
		b.WriteString("; the cause precedes the recording")
	}
	fmt.Fprintf(&b, " (confidence %.2f%s)", f.Confidence, judged(f))
	return b.String()
}

// judged says of how many steps the numbers are, which are not all in which the
// finding was seen. Evidence of other kinds may not say it.
func judged(f *model.Finding) string {
	var ev struct {
		Steps int64 `json:"steps"`
	}
	switch err := json.Unmarshal([]byte(f.Evidence), &ev); {
	case err != nil || ev.Steps < 1:
		return ""
	case ev.Steps == 1:
		return ", 1 step judged"
	}
	return fmt.Sprintf(", %d steps judged", ev.Steps)
}

func writeNumbers(b *strings.Builder, f *model.Finding) {
	if f.WaitCaused.OK {
		fmt.Fprintf(b, "; the others together waited %s per step for it%s",
			seconds(f.WaitCaused.V), share(f.WaitCausedShare, "all wait"))
	}
	if f.CostSeconds.OK {
		fmt.Fprintf(b, "; mending it alone would save %s per step%s",
			seconds(f.CostSeconds.V), share(f.CostShare, "the step"))
	}
}

func place(f *model.Finding) string {
	switch {
	case f.Class == model.ClassLink && f.Link != "" && f.Host != "":
		return fmt.Sprintf("link %s, sent from %s", f.Link, f.Host)
	case f.Class == model.ClassLink && f.Link != "":
		return "link " + f.Link
	case f.Rank.OK && f.Host != "":
		return fmt.Sprintf("rank %d on %s", f.Rank.V, f.Host)
	case f.Rank.OK:
		return fmt.Sprintf("rank %d", f.Rank.V)
	case len(f.Ranks) > 0:
		return fmt.Sprintf("%d ranks", f.RanksCount.Or(int64(len(f.Ranks))))
	case f.Host != "":
		return "host " + f.Host
	case f.Link != "":
		return "link " + f.Link
	case f.CommID != "":
		return "communicator " + f.CommID
	default:
		return "job " + f.JobID
	}
}

// seconds renders with the microsecond as the least digit: less is noise here.
func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond).String()
}

func share(o optionalFloat, of string) string {
	if !o.OK {
		return ""
	}
	return fmt.Sprintf(" (%.1f %% of %s)", 100*o.V, of)
}
