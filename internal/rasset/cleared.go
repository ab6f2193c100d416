// SPDX-License-Identifier: Apache-2.0

package rasset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/dumpset"
	"github.com/lockstep-otel/lockstep/internal/ras"
)

// cleared are communicators, by hash, in which ranks differed, and no longer do in a later answer: in
// words. Such an answer is a text, which lists no communicator without a difference.
func cleared(answers []Answer) map[uint64]string {
	last := map[uint64]*Answer{} // the newest that lists the communicator
	comms := map[uint64]*ras.Comm{}
	for i := range answers {
		a := &answers[i]
		for k := range a.Status.Comms {
			c := &a.Status.Comms[k]
			if was := last[c.Hash]; was == nil || a.at > was.at {
				last[c.Hash], comms[c.Hash] = a, c
			}
		}
	}
	var clears *Answer // the newest that is whole
	for i := range answers {
		if a := &answers[i]; a.Status.Whole() && (clears == nil || a.at > clears.at) {
			clears = a
		}
	}
	out := map[uint64]string{}
	for hash, a := range last {
		if clears == nil || clears.at <= a.at || !sameSize(a.Status, clears.Status) {
			continue
		}
		switch c := comms[hash]; {
		case !differs(c):
		case len(c.Ranks)+len(c.Unlisted) == 0:
			out[hash] = fmt.Sprintf("ranks did not answer in %s, and do in %s", a.text(), clears.text())
		default:
			out[hash] = fmt.Sprintf("ranks differed in %s, and no longer do in %s", a.text(), clears.text())
		}
	}
	return out
}

// sameSize reports whether two answers can be of one job, as far as they count its GPUs.
func sameSize(a, b *ras.Status) bool { return a.GPUs == 0 || b.GPUs == 0 || a.GPUs == b.GPUs }

// differs reports whether members have launched different counts, failed or do not answer. A text lists
// no communicator without a difference.
func differs(c *ras.Comm) bool {
	if len(c.Missing)+len(c.Unlisted) > 0 {
		return true
	}
	for i := range c.Ranks {
		if r := &c.Ranks[i]; r.Errors != c.Ranks[0].Errors || !slices.Equal(r.Counts, c.Ranks[0].Counts) {
			return true
		}
	}
	return false
}

// without leaves out the communicators that are cleared.
func without(s *ras.Status, cleared map[uint64]string) *ras.Status {
	out := *s
	out.Comms = slices.DeleteFunc(slices.Clone(s.Comms), func(c ras.Comm) bool { return cleared[c.Hash] != "" })
	return &out
}

// sayCleared says what is cleared: where nothing else differs, that is all that is known.
func sayCleared(h *dumpset.Hang, cleared map[uint64]string) {
	var all []string
	for hash, text := range cleared {
		all = append(all, fmt.Sprintf("in communicator 0x%016x %s", hash, text))
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	if all = all[:min(len(all), maxRemarks)]; len(h.Roots) == 0 {
		h.Verdict = desync.Undecided
		h.MayRun = strings.Join(all, "; ") + "; RAS does not count what has ended: if the job hangs, dumps of the Flight Recorder or stacks (py-spy dump) decide"
		return
	}
	for _, text := range all {
		h.Remarks = append(h.Remarks, strings.ToUpper(text[:1])+text[1:]+".")
	}
}
