// SPDX-License-Identifier: Apache-2.0

package kineto

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/lockstep-otel/lockstep/internal/kernelname"
	"github.com/lockstep-otel/lockstep/internal/model"
)

// Trace is what was read of one file. It is not safe for concurrent use.
type Trace struct {
	file     string
	o        Options
	base     int64 // ns, added to every time
	info     distributedInfo
	hostName string
	pid      model.Optional[int64]

	rank    model.Rank
	hasRank bool

	ops          chunked[event] // what becomes operations
	host         chunked[event] // operators of the host
	launches     chunked[launch]
	marks        chunked[event] // around launches of collectives
	commLaunches chunked[event]
	stepMarks    chunked[event]

	names  []name
	texts  []string
	ranks  []string
	metas  []meta
	groups map[group]*groupInfo

	steps    []step
	order    []uint32 // of ops, as they are emitted
	problems []model.Problem
	stats    Stats
}

func newTrace(file string, o Options) *Trace {
	return &Trace{file: file, o: o, metas: []meta{noMeta}, groups: map[group]*groupInfo{}}
}

// header takes a member of the file's object.
func (t *Trace) header(key string, val []byte, at int64) {
	var wrong []string
	switch key {
	case "baseTimeNanoseconds":
		if n, ok := parseInt(val); ok && n >= 0 {
			t.base = n
		} else {
			wrong = []string{fmt.Sprintf("%s: got %.40q; want nanoseconds since 1970", key, val)}
		}
	case "host_name":
		if err := json.Unmarshal(val, &t.hostName); err != nil {
			wrong = []string{inWords(key, err)}
		}
		t.hostName = kernelname.Clip(t.hostName)
	case "distributedInfo":
		t.info, wrong = decodeInfo(val)
	}
	for _, what := range wrong {
		t.problem(at, "read "+what)
	}
}

// finish makes operations out of events, once all is read.
func (p *parser) finish() {
	t := p.t
	t.names, t.texts, t.ranks = p.names.all, p.texts.all, p.ranks.all
	for i := range t.texts {
		t.texts[i] = unescape([]byte(t.texts[i]))
	}
	t.identify()
	t.joinLaunches()
	if p.gpu {
		t.joinMarks()
		t.takeHost(p.o.HostOps, evHost)
	} else {
		t.joinGloo()
		t.outermostHost()
	}
	t.findSteps()
	t.assignSteps()
	t.number()
	t.sortOps()
	p.faults.into(&t.stats)
	t.problems = append(t.problems, p.faults.problems(t.file, p.o)...)
}

// identify completes the rank from the header, the file's name and the options.
func (t *Trace) identify() {
	id := JobID(t.o, t.file)
	t.rank = model.Rank{
		JobID: id, JobName: firstText(t.o.JobName, id), HostName: t.hostName, PID: t.pid,
		Incarnation: model.Incarnation(model.World{Launcher: []string{id}}),
	}
	switch {
	case t.info.Rank != nil:
		t.rank.Rank, t.hasRank = *t.info.Rank, true
	default:
		t.rank.Rank, t.hasRank = RankOfName(t.o, t.file)
	}
	switch {
	case t.o.WorldSize > 0:
		t.rank.WorldSize = model.Some(t.o.WorldSize)
	case t.info.WorldSize != nil:
		t.rank.WorldSize = model.Some(*t.info.WorldSize)
	}
	t.rank.ClockID = clockID(t.rank)
}

func clockID(r model.Rank) string { return fmt.Sprintf("trace:%s/%d", r.JobID, r.Rank) }

// RankOfName finds the rank in a file's name: the last match of the pattern,
// and the first group of it that is a number that a rank may have.
func RankOfName(o Options, file string) (rank int64, ok bool) {
	all := o.withDefaults().RankPattern.FindAllStringSubmatch(filepath.Base(file), -1)
	for _, m := range slices.Backward(all) {
		if n, ok := firstNumber(m[1:]); ok && n >= 0 && n < MaxWorldSize {
			return n, true
		}
	}
	return 0, false
}

// firstNumber returns the first group that matched, as a number.
func firstNumber(groups []string) (int64, bool) {
	for _, g := range groups {
		if n, ok := parseInt([]byte(g)); ok && g != "" {
			return n, true
		}
	}
	return 0, false
}

// Rank returns the rank's identity. Where HasRank is false its number means
// nothing until SetRank.
func (t *Trace) Rank() model.Rank { return t.rank }

// SetRank replaces the rank's identity, which a caller knows better that sees
// all files of a job. An empty ClockID is derived from the job and the rank.
func (t *Trace) SetRank(r model.Rank) {
	if r.ClockID == "" {
		r.ClockID = clockID(r)
	}
	t.rank, t.hasRank = r, true
	clear(t.groups)
}

// HasRank reports whether the trace or its file's name says the rank.
func (t *Trace) HasRank() bool { return t.hasRank }

// Report adds to the problems what a caller sees that knows the whole job.
func (t *Trace) Report(what string) { t.problem(-1, what) }

// Extent returns when the first event kept begins and the last one ends, in
// Unix ns; false where there is none.
func (t *Trace) Extent() (start, end int64, ok bool) {
	for i := range t.ops.n {
		e := t.ops.at(i)
		if !ok {
			start, end, ok = e.ts, e.end(), true
		}
		start, end = min(start, e.ts), max(end, e.end())
	}
	return t.base + start, t.base + end, ok
}

// Problems returns what could not be read or had to be assumed, each once.
func (t *Trace) Problems() []model.Problem {
	out := slices.Clone(t.problems)
	if t.hasRank {
		for i := range out {
			rank := t.rank.Rank
			out[i].Rank = &rank
		}
	}
	return out
}

// Stats returns what was counted.
func (t *Trace) Stats() Stats { return t.stats }
