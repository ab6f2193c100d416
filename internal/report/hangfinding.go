// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// hangFinding prints one finding of kind desync under its title.
func (p *Printer) hangFinding(f *model.Finding, title string) {
	p.headline(title, Sentence(f))
	p.Field("place", Clean(HangPlace(f))+", "+Clean(f.Class))
	p.Optional("cause", Clean(CauseText(f)))
	p.Optional("operation", hungOpText(f))
	p.Optional("candidates", CandidatesText(f))
	p.Optional("who waits", WaitingText(f))
	p.Optional("since", sinceText(f))
	p.Optional("stall limit", limitText(f))
	p.Field("confidence", fmt.Sprintf("%.2f of 1", f.Confidence))
	p.Optional("what to do", Clean(f.Action))
	p.stack(f.Stack)
	_, known := evidence.As[evidence.Hang](f.Evidence)
	p.raw(f, !known)
}

// hungOpText names the operation, and its communicator for people and for machines.
func hungOpText(f *model.Finding) string {
	var parts []string
	for _, part := range []string{f.Op, f.CommName, f.CommID} {
		if part != "" {
			parts = append(parts, Clean(ShortName(part)))
		}
	}
	return strings.Join(parts, ", ")
}

func sinceText(f *model.Finding) string {
	if f.Start <= 0 {
		return ""
	}
	text := time.Unix(0, f.Start).UTC().Format("2006-01-02 15:04:05.000") + " UTC"
	if f.Time > f.Start {
		text += ", for " + Duration(time.Duration(f.Time-f.Start).Round(100*time.Millisecond))
	}
	return text
}

// limitText says how long the job may stand, and for how long it had.
func limitText(f *model.Finding) string {
	ev, ok := evidence.As[evidence.Hang](f.Evidence)
	if !ok || ev.StallLimit == nil || ev.Stood == 0 {
		return ""
	}
	text := Seconds(ev.Limit)
	if ev.Phase != "" {
		text += " in phase " + Clean(ev.Phase)
	}
	return text + ", by the job's own gaps; nothing had moved for " + Seconds(ev.Stood)
}

func (p *Printer) stack(text string) {
	if text == "" {
		return
	}
	frames, _ := ShownFrames(text)
	for i, f := range frames {
		label := ""
		if i == 0 {
			label = "call stack"
		}
		p.Field(label, Cut(Clean(f), p.Columns()))
	}
}
