// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// HangFinding renders one finding of kind desync under a title, such as "Finding 3";
// sentence says it in one.
func HangFinding(w io.Writer, f *model.Finding, title, sentence string, style Style) error {
	p := &printer{Style: style}
	for _, l := range wrap(clean(title+": "+sentence), p.width()) {
		p.line("%s", p.paint(red, l))
	}
	p.field("place", clean(rootPlace(f))+", "+f.Class)
	p.optional("cause", clean(causeText(f)))
	p.optional("operation", hungOpText(f))
	p.optional("candidates", candidatesText(f))
	p.optional("who waits", victimsText(f))
	p.optional("since", sinceText(f))
	p.optional("stall limit", limitText(f))
	p.field("confidence", fmt.Sprintf("%.2f of 1", f.Confidence))
	p.optional("what to do", clean(f.Action))
	p.stack(f.Stack)
	p.line("")
	if _, err := w.Write(p.Bytes()); err != nil {
		return fmt.Errorf("write finding: %w", err)
	}
	return nil
}

// hungOpText names the operation, and its communicator for people and for machines.
func hungOpText(f *model.Finding) string {
	var parts []string
	for _, part := range []string{f.Op, f.CommName, f.CommID} {
		if part != "" {
			parts = append(parts, clean(shortName(part)))
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
		text += " in phase " + clean(ev.Phase)
	}
	return text + ", by the job's own gaps; nothing had moved for " + Seconds(ev.Stood)
}

func (p *printer) stack(text string) {
	if text == "" {
		return
	}
	frames, _ := shownFrames(text)
	for i, f := range frames {
		label := ""
		if i == 0 {
			label = "call stack"
		}
		p.field(label, cut(clean(f), p.width()))
	}
}
