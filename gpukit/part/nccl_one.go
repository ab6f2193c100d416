// SPDX-License-Identifier: Apache-2.0

package part

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/gpukit/kit"
	"github.com/lockstep-otel/lockstep/gpukit/report"
	"github.com/lockstep-otel/lockstep/internal/fleet"
	"github.com/lockstep-otel/lockstep/internal/ras"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

const (
	flagInferred   = ring.FlagInferred
	flagKernelPart = ring.FlagKernelPart
	flagProxy      = ring.FlagProxy
	flagWaits      = ring.FlagWaits
)

// oneRank runs one rank. NCCL copies the collectives of a single rank without calling the
// plugin; its messages to itself may be kernels.
func (n *ncclChecks) oneRank(ctx context.Context) {
	if !n.room(ctx, "rank-1", 15*time.Second) {
		return
	}
	watch := &ncclWatch{n: n}
	res := n.run(ctx, ncclRun{
		Name: "one", World: 1, Phases: []string{ncclList, ncclBurst, ncclHold, ncclSelf}, Level: "all", Limit: ncclOneLimit, During: watch.during,
	})
	if n.cut("rank-1", res) {
		return
	}
	if len(res.Truths) == 0 || len(res.Seen) == 0 {
		n.p.Addf("rank-1-plugin", report.Failed, "got no ring of one rank: %s", ncclWords(res))
		return
	}
	t, s := res.Truths[0], res.Seen[0]
	n.judge("rank-1-plugin", n.pluginProblems(res), fmt.Sprintf("the plugin is loaded by NCCL %s with interface v%d, and names its ring in NCCL's log", n.version(t), s.abi()),
		report.Figure{Name: "interface", Value: float64(s.abi()), Unit: "1"}, figure("communicators", len(s.Comms)))
	n.counted(t, s)
	n.drops("rank-1", res, 1)
	n.end("rank-1", res, 1)
	if v := n.selfMessages(t, s); len(v.Pairs) > 0 && v.count(ring.FlagKernel) > 0 {
		n.kernels("rank-1", v)
	} else {
		n.p.Addf("rank-1-gpu-clock", report.NotShown, "NCCL gave no kernel times for %d messages of a rank to itself", len(v.Pairs))
	}
	watch.judgeVersion(n.version(t))
}

func (n *ncclChecks) version(t *ncclTruth) string {
	if t.NCCL != "" {
		return t.NCCL
	}
	return "2.28 (stand-in)"
}

func (n *ncclChecks) pluginProblems(res *ncclResult) (problems []string) {
	want := 5 // what the stand-in speaks
	log := strings.Join(res.Truths[0].Log, "\n")
	if n.k.GPU != nil {
		want, log = interfaceOf(res.Truths[0].NCCL), res.Log
		if loaded := fmt.Sprintf("Loaded lockstep (v%d)", want); !strings.Contains(log, loaded) {
			problems = append(problems, fmt.Sprintf("got no line with %q in NCCL's log", loaded))
		}
	}
	if got := res.Seen[0].abi(); int(got) != want {
		problems = append(problems, fmt.Sprintf("got interface v%d in the ring; want v%d", got, want))
	}
	if !strings.Contains(log, pluginPrefix) {
		problems = append(problems, "got no line of the plugin in NCCL's log")
	}
	if res.Seen[0].Witnesses&ring.WitnessNCCL == 0 {
		problems = append(problems, "the ring does not name NCCL as what feeds it")
	}
	return problems
}

// counted reports what came, which is not known before.
func (n *ncclChecks) counted(t *ncclTruth, s *ringSeen) {
	var figures []report.Figure
	for _, kind := range slices.Sorted(maps.Keys(s.Kinds)) {
		figures = append(figures, figure(kind+" records", int(s.Kinds[kind])))
	}
	open, functions := uint64(0), map[string]int{}
	for i := range s.Comms {
		for _, f := range s.Comms[i].Frontiers {
			open += f.Open
		}
		for j := range s.Comms[i].Ops {
			functions[s.Comms[i].Ops[j].Function]++
		}
	}
	var problems []string
	if open > 0 {
		problems = append(problems, fmt.Sprintf("%d operations are open at the end; want none", open))
	}
	if s.ops() > len(t.Ops) {
		problems = append(problems, fmt.Sprintf("got %d operations of %d that the program did", s.ops(), len(t.Ops)))
	}
	right := n.good
	text := fmt.Sprintf("NCCL reported %d of %d operations on a communicator of one rank (%s)", s.ops(), len(t.Ops), countsOf(functions))
	switch {
	case s.ops() == 0:
		right, text = report.NotShown, fmt.Sprintf("NCCL reported none of %d operations on a communicator of one rank", len(t.Ops))
	case s.ops() < len(t.Ops):
		right = report.Noted // NCCL copies some by itself, and which is its own matter
	}
	judge(n.p, right, "rank-1-callbacks", problems, text, figures...)
}

func countsOf(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

// selfMessages compares the messages of a rank to itself alone.
func (n *ncclChecks) selfMessages(t *ncclTruth, s *ringSeen) *ncclVerdict {
	only, seen := *t, *s
	only.Ops = slices.DeleteFunc(slices.Clone(t.Ops), func(o ncclOp) bool { return !o.message() })
	seen.Comms = slices.Clone(s.Comms)
	for i := range seen.Comms {
		c := &seen.Comms[i]
		c.Ops = slices.DeleteFunc(slices.Clone(c.Ops), func(r ncclRecord) bool { return messageOf(&r) == 0 })
	}
	v := compareNCCL([]*ncclTruth{&only}, []*ringSeen{&seen})
	if n.silent = len(v.Pairs) == 0; n.silent {
		n.p.Addf("rank-1-messages", report.NotShown, "NCCL reported none of %d messages of a rank to itself", len(only.Ops))
		return v
	}
	what, problems := selfEnds(s, v)
	n.judge("rank-1-messages", append(v.Problems[ncclAboutOps], problems...), fmt.Sprintf("%d of %d messages of one rank to itself, once each, with bytes and type, %s", len(v.Pairs), v.Want, what),
		figure("completed by inference", v.count(flagInferred)), figure("without an end", len(v.Problems[ncclAboutEnds])))
	return v
}

// selfEnds returns what is known of the ends of a rank's messages to itself. NCCL copies them
// without a proxy, and where it reports no channel of their kernels either, nothing reports
// an end.
func selfEnds(s *ringSeen, v *ncclVerdict) (what string, problems []string) {
	if s.Kinds[ring.KindKernelChannel.String()] == 0 && len(v.Problems[ncclAboutEnds]) == len(v.Pairs) {
		return "whose ends NCCL does not report", nil
	}
	return "and end", v.Problems[ncclAboutEnds]
}

// ncclWatch looks at a job while it runs.
type ncclWatch struct {
	n *ncclChecks

	shown    string // of lockstep rings --json, while an operation is open
	shownErr error
	open     *ras.Status // then
	openErr  error
	held     *ras.Status // when all operations are done
	heldErr  error
	versions *fleet.Read
}

func (w *ncclWatch) during(ctx context.Context, r *ncclRunning) {
	defer func() {
		for _, name := range []string{fileJoin, fileGo} {
			if err := r.signal(name); err != nil {
				w.n.p.Add("talk-to-ranks", report.Failed, err.Error())
			}
		}
	}()
	if r.World > 1 {
		if !r.waitFiles(ctx, ncclOpen) {
			return
		}
		if !w.settle(ctx) {
			return
		}
		w.lookOpen(ctx, r)
	}
	if r.waitFiles(ctx, ncclHold) {
		w.lookHeld(ctx, r)
	}
}

// settle lets the ranks that do not sleep come into the operation.
func (w *ncclWatch) settle(ctx context.Context) bool {
	t := time.NewTimer(700 * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (w *ncclWatch) lookOpen(ctx context.Context, r *ncclRunning) {
	out, err := w.n.k.Run(ctx, kit.Command{Path: w.n.k.Lockstep(), Args: []string{"rings", "--json", filepath.Join(r.Dir, "rings")}, Limit: 5 * time.Second})
	w.shown, w.shownErr = out.Stdout, err
	w.open, w.openErr = w.ask(ctx, r, "ras-open.json")
	if err := r.signal(fileJoin); err != nil {
		w.shownErr = err
	}
}

func (w *ncclWatch) lookHeld(ctx context.Context, r *ncclRunning) {
	w.held, w.heldErr = w.ask(ctx, r, "ras-held.json")
	if w.n.k.GPU != nil {
		w.versions = fleet.NCCL(ctx, r.Address, rasTimeout)
	}
}

// ask asks NCCL's RAS of the job; the stand-in has none.
func (w *ncclWatch) ask(ctx context.Context, r *ncclRunning, keep string) (*ras.Status, error) {
	if w.n.k.GPU == nil {
		return nil, nil
	}
	c := ras.Client{Address: r.Address, Wait: 2 * time.Second, Timeout: rasTimeout, MaxBytes: rasBytes}
	text, err := c.JSON(ctx)
	if err != nil {
		return nil, err
	}
	w.n.entries = append(w.n.entries, kit.Entry{Name: fmt.Sprintf("ras-%d/%s", r.World, keep), Content: text})
	return ras.Parse(bytes.NewReader(text), rasBytes)
}

// judge adds what was seen of two ranks.
func (w *ncclWatch) judge(res *ncclResult) {
	n := w.n
	shown, err := parseShown(w.shown)
	switch {
	case w.shownErr != nil:
		n.p.Addf("ranks-2-open", report.Failed, "show what is open: %v", w.shownErr)
	case err != nil:
		n.p.Add("ranks-2-open", report.Failed, err.Error())
	default:
		n.judge("ranks-2-open", compareOpen(shown, res.Truths), "while one rank sleeps, lockstep rings shows the operation that the other waits in, and nothing of the sleeper")
	}
	if n.k.GPU == nil {
		n.p.Add("ranks-2-ras", report.NotShown, "RAS needs NCCL on a GPU")
		return
	}
	w.judgeRAS(res)
}

func (w *ncclWatch) judgeRAS(res *ncclResult) {
	if w.heldErr != nil || w.held == nil {
		w.n.p.Addf("ranks-2-ras", report.Failed, "got no answer of NCCL's RAS: %v", w.heldErr)
		return
	}
	counted, problems := compareRAS(w.held, res.Truths, res.Seen)
	w.n.judge("ranks-2-ras", problems, "NCCL's RAS counts what each rank did, function by function", figure("collectives counted", counted), figure("communicators", len(w.held.Comms)))
	if w.openErr != nil || w.open == nil {
		w.n.p.Addf("ranks-2-ras-open", report.Failed, "got no answer of NCCL's RAS: %v", w.openErr)
		return
	}
	late, problems := behind(w.open), []string(nil)
	if want := res.Truths[0].LateRank; !slices.Equal(late, []int{want}) {
		problems = append(problems, fmt.Sprintf("by NCCL's RAS ranks %v are behind; want %d", late, want))
	}
	w.n.judge("ranks-2-ras-open", problems, "while one rank sleeps, NCCL's RAS has it one all-reduce behind")
}

// judgeVersion compares the version that NCCL's RAS reports.
func (w *ncclWatch) judgeVersion(want string) {
	if w.n.k.GPU == nil {
		w.n.p.Add("rank-1-ras-version", report.NotShown, "RAS needs NCCL on a GPU")
		return
	}
	if ras.Nobody(w.heldErr) {
		w.n.p.Addf("rank-1-ras-version", report.NotShown, "NCCL opens no RAS for a rank alone: %v", w.heldErr)
		return
	}
	var problems []string
	got := ""
	if w.versions != nil {
		problems = append(problems, w.versions.Problems...)
		for _, v := range w.versions.Versions {
			got = v.Version
		}
	}
	if w.heldErr != nil {
		problems = append(problems, w.heldErr.Error())
	}
	if !strings.HasPrefix(got, want) {
		problems = append(problems, fmt.Sprintf("got version %q of NCCL's RAS; want %s", got, want))
	}
	w.n.judge("rank-1-ras-version", problems, "NCCL's RAS answers in JSON, and reports version "+got)
}
