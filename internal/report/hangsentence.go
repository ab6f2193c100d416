// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/model/evidence"
)

// hangClaim says what one rank did or did not, and what several did.
type hangClaim struct{ one, all string }

// hangClaims say what each class of a hang is; %s is the operation. Those of one are told
// when a rank is named, those of all when several are, or none.
var hangClaims = map[string]hangClaim{
	model.ClassProcessDead:        {"its process is gone, and with it the end of %s", "their processes are gone, and with them the end of %s"},
	model.ClassProcessStopped:     {"its process is stopped, and with it %s", "their processes are stopped, and with them %s"},
	model.ClassDumpMissing:        {"nothing is known of it, and nobody else is missing in %s", "nothing is known of the candidate, and nobody else is missing in %s"},
	model.ClassNotScheduled:       {"has not entered %s", "have not entered %s"},
	model.ClassStalledOp:          {"does not get out of %s, which all members have entered", "all members have entered %s, and nobody gets out"},
	model.ClassCompletionLag:      {"its device has not completed %s, which others have", "their devices have not completed %s, which others have"},
	model.ClassNetwork:            {"the network holds up %s, which all members have entered", "the network holds up %s, which all members have entered"},
	model.ClassMismatchOp:         {"calls another operation than the others in the place of %s", "the members call different operations in the place of %s"},
	model.ClassMismatchSize:       {"has another size than the others in %s", "the members have different sizes in %s"},
	model.ClassMismatchDType:      {"has another data type than the others in %s", "the members have different data types in %s"},
	model.ClassMismatchRoot:       {"names another root than the others in %s", "the members name different roots in %s"},
	model.ClassSplitImbalance:     {"what its peers send and receive differs in %s", "what the members send is not what they receive in %s"},
	model.ClassOrderCycle:         {"waits for itself by way of others, at %s", "wait for one another, each in what it entered first, at %s"},
	model.ClassP2PUnmatched:       {"nobody answers its %s", "nobody answers %s"},
	model.ClassInitIncomplete:     {"has not come to set up %s", "have not come to set up %s"},
	model.ClassIncompleteEvidence: {"hangs in %s; the evidence does not decide", "%s hangs; the evidence does not decide"},
}

// someThrough are claims of what others are through.
var someThrough = map[string]hangClaim{
	model.ClassStalledOp: {"does not get out of %s, which others are through", "members do not get out of %s, which others are through"},
	model.ClassNetwork:   {"the network holds up %s, which some are through", "the network holds up %s, which some are through"},
}

// notStarted is said of devices that have not begun what those of the others have.
var notStarted = hangClaim{"its device has not started %s, which the others have", "their devices have not started %s, which the others have"}

func claimOf(f *model.Finding) (c hangClaim, ok bool) {
	ev := hangEvidence(f)
	if f.Class == model.ClassCompletionLag && ev.Idle > 0 {
		return notStarted, true
	}
	if ev.Done > 0 {
		if c, ok = someThrough[f.Class]; ok {
			return c, true
		}
	}
	if c, ok = otherEnd(f); ok {
		return c, true
	}
	c, ok = hangClaims[f.Class]
	return c, ok
}

// hangEvidence returns the numbers of a hang; none where the evidence is not that of a hang.
func hangEvidence(f *model.Finding) *evidence.Hang {
	if ev, ok := evidence.As[evidence.Hang](f.Evidence); ok {
		return ev
	}
	return &evidence.Hang{}
}

// otherEnd is said of who has not come to a message whose other end waits: "send 1 -> 9" is what
// rank 1 called, and rank 9 has not received.
func otherEnd(f *model.Finding) (hangClaim, bool) {
	if f.Class != model.ClassNotScheduled || !f.Rank.OK {
		return hangClaim{}, false
	}
	call, ends, _ := strings.Cut(f.Op, " ")
	src, dst, ok := strings.Cut(ends, " -> ")
	rank := strconv.FormatInt(f.Rank.V, 10)
	switch {
	case ok && call == model.OpSend && dst == rank:
		return hangClaim{one: "has not come to receive from rank " + src + ", which waits in %s"}, true
	case ok && call == model.OpRecv && src == rank:
		return hangClaim{one: "has not come to send to rank " + dst + ", which waits in %s"}, true
	}
	return hangClaim{}, false
}

// hang says what was not done, who waits, who can be at fault, and since when.
func hang(f *model.Finding) string {
	var b strings.Builder
	if text := heldText(f); text != "" {
		b.WriteString(text)
	} else if c, ok := claimOf(f); ok {
		claim := c.all
		if f.Rank.OK || f.RanksCount.Or(int64(len(f.Ranks))) == 1 {
			claim = c.one
		}
		b.WriteString(": " + strings.Replace(claim, "%s", hungOp(f), 1))
	} else if f.Op != "" {
		b.WriteString(", at " + hungOp(f))
	}
	b.WriteString(candidates(f))
	b.WriteString(byLaunches(f))
	b.WriteString(waiters(f))
	if f.Start > 0 {
		b.WriteString("; " + span(f))
	}
	return b.String()
}

// candidates says who can be at fault where that is not decided, or with who is named.
func candidates(f *model.Finding) string {
	if len(f.Ranks) > 0 {
		beside := slices.DeleteFunc(slices.Clone(f.Candidates), func(r int64) bool { return slices.Contains(f.Ranks, r) })
		if len(beside) == 0 {
			return ""
		}
		return "; at fault with it may be " + Ranks(beside)
	}
	ev := hangEvidence(f)
	unlisted := ev.Inferred && ev.World == 0
	switch {
	case len(f.Candidates) == 0 && unlisted && f.Class == model.ClassIncompleteEvidence:
		return ": the candidates are ranks of which nothing is known"
	case len(f.Candidates) == 0:
		return ""
	}
	text := ": candidates are "
	if f.CandidatesCount.Or(int64(len(f.Candidates))) == 1 {
		text = ": the candidate is "
	}
	text += SpansOf(f.Candidates, f.CandidatesCount)
	if unlisted {
		text += ", or a rank that has no state here"
	}
	return text
}

// heldWays say how a process is held, by model.ProcessState.
var heldWays = map[string]string{
	string(model.ProcessStopped): "is stopped by a signal (SIGSTOP or another)",
	string(model.ProcessTraced):  "is stopped by a debugger",
	string(model.ProcessFrozen):  "is frozen with its cgroup",
}

// heldText says how the process of a rank is held, and for how long.
func heldText(f *model.Finding) string {
	ev, ok := evidence.As[evidence.Held](f.Evidence)
	if f.Class != model.ClassProcessStopped || !ok || heldWays[ev.Process] == "" {
		return ""
	}
	text, way := ": its process", heldWays[ev.Process]
	if ev.PID != nil && *ev.PID > 0 {
		text += fmt.Sprintf(" %d", *ev.PID)
	}
	if f.Status == model.StatusClosed {
		return text + " " + strings.Replace(way, "is ", "was ", 1) + " for " + heldFor(ev.Seconds)
	}
	return text + " " + way + ", for " + heldFor(ev.Seconds)
}

// heldFor spells a time in whole seconds.
func heldFor(s float64) string { return fmt.Sprintf("%.0f s", s) }

// byLaunches says which processes are meant, and how much each has launched, where NCCL's RAS counts
// it.
func byLaunches(f *model.Finding) (text string) {
	ev := hangEvidence(f)
	switch n := len(ev.Processes); {
	case n > maxNamed:
		text = fmt.Sprintf(" (%s, and %d more)", strings.Join(ev.Processes[:maxNamed], "; "), n-maxNamed)
	case n > 0:
		text = " (" + strings.Join(ev.Processes, "; ") + ")"
	}
	if ev.Launched != "" {
		text += "; " + ev.Launched
	}
	return text
}

// maxNamed bounds the processes that a sentence names.
const maxNamed = 4

// counted reports whether a communicator's id is a number, as PyTorch counts its groups: ids of
// libraries are hashes.
func counted(id string) bool {
	_, err := strconv.ParseUint(id, 10, 32)
	return err == nil
}

// hungOp names the operation and its communicator, as far as they are known.
func hungOp(f *model.Finding) string {
	comm := cmp.Or(f.CommName, f.CommID)
	if f.CommName != "" && f.CommID != f.CommName && counted(f.CommID) {
		comm += " (" + f.CommID + ")" // several groups may have the name
	}
	switch {
	case f.Op == "" && comm == "":
		return "an operation"
	case f.Op == "" && f.Class == model.ClassInitIncomplete:
		return comm
	case f.Op == "":
		return "an operation of " + comm
	case comm == "":
		return f.Op
	}
	return f.Op + " of " + comm
}

// waiters says how many wait for the place itself, in whatever operation, and how many for
// those.
func waiters(f *model.Finding) string {
	n, through := f.WaitingCount.Or(int64(len(f.Waiting))), f.Through.Or(0)
	var text string
	switch {
	case n == 1:
		text = "; 1 rank waits" + forWhom(f)
	case n > 1:
		text = "; " + Thousands(n) + " ranks wait" + forWhom(f)
	case through == 1:
		return "; 1 rank waits through others"
	case through > 0:
		return "; " + Thousands(through) + " ranks wait through others"
	}
	if through > 0 {
		text += ", " + Thousands(through) + " more through others"
	}
	return text
}

// forWhom refers to the place, where that is ranks.
func forWhom(f *model.Finding) string {
	switch n := f.RanksCount.Or(int64(len(f.Ranks))); {
	case n > 1 && !f.Rank.OK:
		return " for them"
	case n > 0, f.Rank.OK:
		return " for it"
	}
	return ""
}

// span says since when, or from when to when, by the clock of the ranks.
func span(f *model.Finding) string {
	clock := func(ns int64) string { return time.Unix(0, ns).UTC().Format(time.TimeOnly) }
	if f.Status == model.StatusClosed {
		return fmt.Sprintf("from %s to %s UTC", clock(f.Start), clock(f.Time))
	}
	return fmt.Sprintf("since %s UTC", clock(f.Start))
}
