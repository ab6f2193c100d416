// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"slices"
	"time"

	"github.com/lockstep-otel/lockstep/cmd/lockstep/internal/render"
	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/otelmap"
	"github.com/lockstep-otel/lockstep/internal/report"
)

// hangInput is what the report on hangs speaks of.
func (a *analysis) hangInput() *render.HangInput {
	return &render.HangInput{Result: a.dumps, Sentence: report.Sentence}
}

func (a *analysis) writeHangs(w io.Writer, style report.Style) error {
	if a.dumps == nil {
		return nil
	}
	return render.WriteHangs(w, a.hangInput(), style)
}

// dumpsVerdict says what dumps came to, in the words of the whole.
func dumpsVerdict(r *dumpset.Result) render.Verdict {
	verdict := render.CannotTell
	mayRun := false
	logs := slices.ContainsFunc(r.Hangs, func(h dumpset.Hang) bool { return h.Logs })
	for i := range r.Hangs {
		switch h := &r.Hangs[i]; {
		case h.Verdict == desync.Hang, h.Verdict == desync.Undecided && h.MayRun == "", namesRanks(h):
			return render.Found
		case h.Verdict == desync.Undecided, h.Verdict == desync.NoData && logs:
			mayRun = true
		case h.Verdict == desync.Healthy:
			verdict = render.None
		}
	}
	if mayRun {
		return render.CannotTell
	}
	return verdict
}

// namesRanks reports whether a finding names a rank, with whatever confidence.
func namesRanks(h *dumpset.Hang) bool {
	return slices.ContainsFunc(h.Roots, func(r desync.Root) bool { return r.Finding.RanksCount.V > 0 || len(r.Finding.Ranks) > 0 })
}

// hangOutput is the report on one job in JSON; docs/hangs.md is its reference.
type hangOutput struct {
	Job      string         `json:"lockstep.job.id"`
	Of       int            `json:"incidents_of_job"`
	Began    int64          `json:"incident_unix_nano,omitempty"`
	Times    string         `json:"times,omitempty"`
	Remarks  []string       `json:"remarks,omitempty"`
	Answers  int            `json:"ras_answers,omitempty"`
	Verdict  desync.Verdict `json:"verdict"`
	MayRun   string         `json:"may_run,omitempty"`
	Untimed  bool           `json:"untimed,omitempty"`
	Hung     bool           `json:"hung,omitempty"`
	Unlisted bool           `json:"world_size_unknown,omitempty"`
	Since    int64          `json:"since_unix_nano,omitempty"`
	Ranks    int            `json:"ranks_known"`
	Victims  int            `json:"ranks_waiting"`
	Absent   []absentOutput `json:"absent"`
	Roots    []rootOutput   `json:"roots"`
	Groups   []groupOutput  `json:"groups"`
	Omitted  int            `json:"groups_omitted"`
	Problems []string       `json:"problems"`
	Files    int            `json:"files"`
	Logs     bool           `json:"logs,omitempty"`
	Entries  int64          `json:"operations"`
	Versions []string       `json:"versions"`
	Libs     []string       `json:"libraries"`
	Active   int            `json:"only_active"`
	Partial  int            `json:"partial"`
}

type absentOutput struct {
	Rank   int64  `json:"lockstep.rank"`
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

type rootOutput struct {
	Finding map[string]any `json:"finding"`
	Op      *opOutput      `json:"operation,omitempty"`
	Path    []hopOutput    `json:"path"`
	Members []actOutput    `json:"members"`
	Omitted int            `json:"members_omitted"`
}

type opOutput struct {
	Name  string  `json:"name"`
	Comm  string  `json:"lockstep.comm.id"`
	Group string  `json:"lockstep.comm.name,omitempty"`
	Seq   int64   `json:"seq"`
	Src   *int64  `json:"src,omitempty"`
	Dst   *int64  `json:"dst,omitempty"`
	Ranks []int64 `json:"ranks,omitempty"`
}

type hopOutput struct {
	Rank int64     `json:"lockstep.rank"`
	Op   *opOutput `json:"operation"`
	For  *int64    `json:"waits_for,omitempty"`
	Why  string    `json:"why,omitempty"`
}

type actOutput struct {
	Rank  int64  `json:"lockstep.rank"`
	Host  string `json:"host.name,omitempty"`
	State string `json:"state"`
	What  string `json:"what,omitempty"`
	Stack string `json:"code.stacktrace,omitempty"`
}

type groupOutput struct {
	Comm      string    `json:"lockstep.comm.id"`
	Name      string    `json:"lockstep.comm.name,omitempty"`
	Members   int       `json:"members"`
	Seen      int       `json:"seen"`
	Enqueued  []*int64  `json:"enqueued"`  // least, greatest
	Completed []*int64  `json:"completed"` // least, greatest
	Open      int       `json:"open"`
	Head      *opOutput `json:"oldest_open,omitempty"`
	Absent    []int64   `json:"not_in_it,omitempty"`
	Note      string    `json:"note,omitempty"`
}

func hangsOutput(r *dumpset.Result) []hangOutput {
	out := []hangOutput{}
	if r == nil {
		return out
	}
	for i := range r.Hangs {
		out = append(out, newHangOutput(&r.Hangs[i]))
	}
	return out
}

func newHangOutput(h *dumpset.Hang) hangOutput {
	out := hangOutput{
		Job: h.Job.ID, Of: h.Incidents, Began: h.Began, Times: h.Times, Remarks: h.Remarks, Answers: h.Answers, Verdict: h.Verdict, MayRun: h.MayRun, Untimed: h.Untimed, Hung: h.Hung, Unlisted: h.Unlisted, Since: h.Since, Ranks: h.Ranks, Victims: h.Victims,
		Absent: []absentOutput{}, Roots: []rootOutput{}, Groups: []groupOutput{}, Omitted: h.GroupsOmitted,
		Problems: append([]string{}, h.Problems...), Files: h.Files, Logs: h.Logs, Entries: h.Entries,
		Versions: append([]string{}, h.Versions...), Libs: append([]string{}, h.Libs...), Active: h.OnlyActive, Partial: h.Partial,
	}
	for _, b := range h.Absent {
		out.Absent = append(out.Absent, absentOutput{b.Rank, string(b.Reason), b.Detail})
	}
	for i := range h.Roots {
		out.Roots = append(out.Roots, newRootOutput(&h.Roots[i]))
	}
	for i := range h.Groups {
		g := &h.Groups[i]
		out.Groups = append(out.Groups, groupOutput{
			Comm: g.Comm.ID, Name: g.Comm.Name, Members: g.Members, Seen: g.Seen,
			Enqueued: pointers(g.EnqueuedMin, g.EnqueuedMax), Completed: pointers(g.CompletedMin, g.CompletedMax),
			Open: g.Open, Head: newOpOutput(&g.Head), Absent: g.Absent, Note: g.Note,
		})
	}
	return out
}

func newRootOutput(r *desync.Root) rootOutput {
	out := rootOutput{Finding: hangFinding(&r.Finding), Op: newOpOutput(&r.Op), Path: []hopOutput{}, Members: []actOutput{}, Omitted: r.MembersOmitted}
	for i := range r.Path {
		h := &r.Path[i]
		hop := hopOutput{Rank: h.Rank, Op: newOpOutput(&h.Op), Why: h.Why}
		if h.For >= 0 {
			hop.For = &h.For
		}
		out.Path = append(out.Path, hop)
	}
	for _, m := range r.Members {
		out.Members = append(out.Members, actOutput(m))
	}
	return out
}

func hangFinding(f *model.Finding) map[string]any {
	out := otelmap.FindingAttributes(f)
	out["body"] = report.Sentence(f)
	if f.Time > 0 {
		out["time_unix_nano"] = f.Time
	}
	if f.Start > 0 {
		out["start_unix_nano"] = f.Start
		out["start"] = time.Unix(0, f.Start).UTC().Format(time.RFC3339Nano)
	}
	return out
}

func newOpOutput(o *desync.OpRef) *opOutput {
	if o.Name == "" {
		return nil
	}
	p := pointers(o.Src, o.Dst)
	return &opOutput{Name: o.Name, Comm: o.Comm.ID, Group: o.Comm.Name, Seq: o.Seq, Src: p[0], Dst: p[1], Ranks: o.Ranks}
}

func pointers(list ...model.Optional[int64]) (out []*int64) {
	for _, o := range list {
		if o.OK {
			out = append(out, &o.V)
		} else {
			out = append(out, nil)
		}
	}
	return out
}
