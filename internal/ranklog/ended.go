// SPDX-License-Identifier: Apache-2.0

package ranklog

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/desync"
)

// endTexts are texts, in lower case, by which programs say that training ended: those of their own, of
// Hugging Face's Trainer, Lightning and Megatron.
var endTexts = [][]byte{
	[]byte("training done"), []byte("training complete"), []byte("training finished"), []byte("finished training"), []byte("completed training"),
	[]byte("'train_runtime'"), []byte("`trainer.fit` stopped: "), []byte("exiting program at iteration"), []byte("[exiting program after"),
}

// notEnds are texts by which a line says something else of the end of training.
var notEnds = [][]byte{[]byte("error"), []byte("fail"), []byte("not "), []byte("abort"), []byte("until"), []byte("when "), []byte("before"), []byte("after training")}

// endsTraining reports whether a line says that training ended.
func endsTraining(text []byte) bool {
	const most = 400 // a longer line is no such message
	if len(text) > most {
		return false
	}
	low := bytes.ToLower(text)
	in := func(s []byte) bool { return bytes.Contains(low, s) }
	return slices.ContainsFunc(endTexts, in) && !slices.ContainsFunc(notEnds, in)
}

// earlier counts the ranks whose time-outs are of an earlier life of the job.
func (s *Set) earlier() (n int) {
	for _, r := range s.ranks {
		if r.earlier.line > 0 {
			n++
		}
	}
	return n
}

// lastEndedWell reports whether the last life of the job ended well: each rank has a log, went on behind
// the time-outs of an earlier life and says that training ended, and nothing else is open.
func (s *Set) lastEndedWell(world int64) bool {
	if s.Dropped > 0 || s.unplaced != (unplaced{}) || len(s.heard) > 0 || len(s.stray) > 0 || s.earlier() == 0 {
		return false
	}
	for rank := range s.exits {
		if s.exits[rank].code != 0 {
			return false
		}
	}
	for rank := range world {
		if r := s.ranks[rank]; r == nil || !s.finished(r) {
			return false
		}
	}
	return true
}

// finished reports whether the log of a rank says that its training ended, and nothing against it.
func (s *Set) finished(r *record) bool {
	if len(r.waits)+len(r.progress) > 0 || r.isStuck || r.fault.weight != weightNone && !r.fault.caught {
		return false
	}
	behind := func(at place) bool {
		return r.done.line > 0 && r.done.file == at.file && r.done.line > at.line || s.doneIn[at.file] > max(at.line, r.last.line)
	}
	return (r.earlier.line == 0 || behind(r.earlier)) && (r.fault.weight == weightNone || behind(r.fault.at)) && behind(place{r.first.file, 0})
}

// wellEnded makes the report on a job whose last life ended well.
func (r *Result) wellEnded(s *Set, world int64) {
	r.Verdict, r.Roots, r.Absent, r.MayRun, r.Problems = desync.Healthy, nil, nil, "", nil
	r.Ranks = int(world)
	text := fmt.Sprintf("An earlier life of the job ended with time-outs of %d ranks", s.earlier())
	if s.earlier() == 1 {
		text = "An earlier life of the job ended with the time-out of a rank"
	}
	r.Remarks = []string{text + ". The last one has none, and the logs of all ranks say that training ended."}
	for _, rank := range slices.Sorted(maps.Keys(s.ranks)) {
		was := s.ranks[rank]
		f := was.fault
		if f.weight < weightUnclear {
			f = was.before
		}
		if was.earlier.line == 0 && f.weight >= weightUnclear && len(r.Remarks) < maxNoted {
			r.Remarks = append(r.Remarks, fmt.Sprintf("Before that, rank %d: %s (%s).", rank, f.text, s.where(f.at)))
		}
	}
}
