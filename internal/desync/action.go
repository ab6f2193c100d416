// SPDX-License-Identifier: Apache-2.0

package desync

import (
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// actions are what an operator would do next.
var actions = map[string]string{
	model.ClassProcessDead:        "read the log of that process and its node's kernel log (OOM, Xid); restart the job without that node if it is its fault",
	model.ClassProcessStopped:     "let that process go on: kill -CONT its pid, let the debugger detach, or thaw its cgroup",
	model.ClassDumpMissing:        "look whether the process of that rank lives, and get its stack (py-spy dump); nothing else is missing",
	model.ClassNotScheduled:       "get the Python stack of that rank (py-spy dump --pid): its host has not come to the operation that the others wait in",
	model.ClassStalledOp:          "look at the network and at NCCL's own log of the members: all have entered, nobody gets out",
	model.ClassCompletionLag:      "look at the device of that rank (nvidia-smi, Xid in the kernel log): its host goes on, its device does not",
	model.ClassNetwork:            "look at the link named by the witness",
	model.ClassMismatchOp:         "compare the call stacks of the members: they run different branches",
	model.ClassMismatchSize:       "compare the sizes that the members hand in: an uneven batch, or a parameter that not all have",
	model.ClassMismatchDType:      "compare the data types that the members hand in",
	model.ClassMismatchRoot:       "compare the root that the members name",
	model.ClassSplitImbalance:     "compare the split sizes of the members: what one sends another must expect",
	model.ClassOrderCycle:         "make all ranks enter the communicators in one order",
	model.ClassP2PUnmatched:       "compare the schedules of both ends: one waits for a message that the other does not exchange",
	model.ClassInitIncomplete:     "look what keeps that rank from setting the communicator up",
	model.ClassIncompleteEvidence: "get the call stacks of the candidates (py-spy dump --pid), and what their processes logged last",
}

// ActionOf returns what an operator does next about a finding of a class, "" of an unknown class.
func ActionOf(class string) string { return actions[class] }

func (w *world) action(r *root) string {
	switch r.class {
	case model.ClassStalledOp:
		if r.node != nil && len(r.node.done) > 0 {
			return "look at the network and at NCCL's own log of the members: all have entered, some do not get out"
		}
	case model.ClassCompletionLag:
		if r.unstarted {
			return "look at what the device of that rank runs before it on that stream (py-spy dump, nvidia-smi, Xid in the kernel log): the others have started the operation"
		}
	case model.ClassIncompleteEvidence:
		if len(r.candidates) == 0 {
			return "give the dumps of all ranks, and --world-size"
		}
		if dark := w.unseenOf(r.candidates); len(dark) > 0 && len(dark) < len(r.candidates) {
			return actions[r.class] + ", first of " + ranksText(dark) + ", of which there is no state"
		}
	}
	return actions[r.class]
}

// unseenOf are those of which there is no state.
func (w *world) unseenOf(ranks []int32) (ids []int64) {
	for _, v := range ranks {
		if w.ranks[v].view == nil {
			ids = append(ids, w.ranks[v].id)
		}
	}
	slices.Sort(ids)
	return ids
}

// maxSpans bounds the spans of ranks in a sentence.
const maxSpans = 8

func ranksText(ids []int64) string {
	spans, listed := model.Spans(ids, maxSpans)
	text := "ranks "
	if len(ids) == 1 {
		text = "rank "
	}
	text += strings.Join(spans, ", ")
	if rest := len(ids) - listed; rest > 0 {
		text += " and " + number(int64(rest)) + " more"
	}
	return text
}
