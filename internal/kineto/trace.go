package kineto

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"

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

// distributedInfo is the trace's own account of the job.
type distributedInfo struct {
	Backend   string          `json:"backend"`
	Rank      *int64          `json:"rank"`
	WorldSize *int64          `json:"world_size"`
	RawGroups json.RawMessage `json:"pg_config"`

	groups []pgConfig
}

type pgConfig struct {
	Name    string          `json:"pg_name"`
	Desc    string          `json:"pg_desc"`
	Backend string          `json:"backend_config"`
	Size    int64           `json:"pg_size"`
	Ranks   json.RawMessage `json:"ranks"`

	ranks []int64
}

// header takes a member of the file's object.
func (t *Trace) header(key string, val []byte, at int64) {
	var err error
	switch key {
	case "baseTimeNanoseconds":
		n, ok := parseInt(val)
		if !ok || n < 0 {
			err = fmt.Errorf("got %.40q; want nanoseconds since 1970", val)
		} else {
			t.base = n
		}
	case "host_name":
		err = json.Unmarshal(val, &t.hostName)
		t.hostName = clip(t.hostName)
	case "distributedInfo":
		var info distributedInfo
		if err = json.Unmarshal(val, &info); err == nil {
			err = errors.Join(info.checkRank(), info.decodeGroups())
			t.info = info
		}
	}
	if err != nil {
		t.problem(at, fmt.Sprintf("read %s: %v", key, err))
	}
}

// checkRank drops a rank and a world size that can not be true, since analyses
// count up to them. Ranks are 32-bit integers in all backends.
func (d *distributedInfo) checkRank() (err error) {
	if d.Rank != nil && (*d.Rank < 0 || *d.Rank > math.MaxInt32) {
		err = fmt.Errorf("got rank %d; want 0 to %d", *d.Rank, math.MaxInt32)
		d.Rank = nil
	}
	if d.WorldSize != nil && (*d.WorldSize < 1 || *d.WorldSize > math.MaxInt32) {
		err = errors.Join(err, fmt.Errorf("got world_size %d; want 1 to %d", *d.WorldSize, math.MaxInt32))
		d.WorldSize = nil
	}
	return err
}

// decodeGroups reads pg_config, which some versions write as a string.
func (d *distributedInfo) decodeGroups() error {
	raw := []byte(d.RawGroups)
	d.RawGroups = nil
	if len(raw) == 0 {
		return nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		raw = []byte(s)
	}
	if len(raw) > 0 && raw[0] == '{' {
		raw = slices.Concat([]byte{'['}, raw, []byte{']'})
	}
	if err := json.Unmarshal(raw, &d.groups); err != nil {
		return fmt.Errorf("read pg_config: %w", err)
	}
	for i := range d.groups {
		g := &d.groups[i]
		g.ranks = rankList(string(listText(g.Ranks)))
		g.Ranks = nil
	}
	return nil
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
		if n, ok := firstNumber(m[1:]); ok && n >= 0 && n <= math.MaxInt32 {
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
