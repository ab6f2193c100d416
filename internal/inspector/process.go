// SPDX-License-Identifier: Apache-2.0

package inspector

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Config says how the records of a process become operations of ranks.
type Config struct {
	JobID, JobName string
	// WorldSize is the job's number of ranks; 0 is that of the largest communicator.
	WorldSize int64
	// WorldWait is for how long, in the log's own time, records are held until the
	// world communicator is chosen.
	WorldWait time.Duration
	// Anchor says where steps begin; without a function nothing has a step.
	Anchor Anchor
	// StepWait is how long, in the log's own time, a step that is over waits for what
	// is written late.
	StepWait time.Duration
	// MaxHeld is the most records held of a process before its world is known, and
	// again of each of its ranks before their steps are over.
	MaxHeld int
}

// Anchor names the operations of the world communicator that begin steps: each Every
// of Function, by the number that NCCL gave them, make one.
type Anchor struct {
	Function string
	Every    int64
}

// Oddities are what could not be treated as usual, as values for counters.
const (
	OddWithoutTime = "without_time"     // operations without a time of day: no span
	OddWithoutStep = "without_step"     // with an anchor: operations outside of any step
	OddLate        = "late"             // operations of a step that was closed: they have none
	OddHeld        = "held_overflow"    // times that something was decided early for want of room
	OddLarger      = "world_larger"     // records of a communicator larger than the world that was chosen
	OddAmbiguous   = "rank_ambiguous"   // records of a process of several ranks, of which it may be any
	OddRanks       = "ranks_overflow"   // records of ranks of one process beyond 64
	OddKeys        = "keys_overflow"    // operations beyond 256 keys of a rank
	OddAnchor      = "anchor_unordered" // anchors that were enqueued before one with a lower number
	OddNotMapped   = "not_mapped"       // records of proxies
)

// Sink takes what is known of ranks. The arguments are valid until the call ends.
type Sink interface {
	Operation(*model.Rank, *model.Op)
	Record(*model.Rank, *Record) // each collective, message and dump, once
	Odd(reason string, n int64)
}

// State is what a Process needs to go on.
type State struct {
	World  string `json:"world,omitempty"` // id of the world communicator
	Size   int64  `json:"size,omitempty"`
	Source Source `json:"source"`
	First  int64  `json:"first,omitempty"` // Unix ns, of the log
	Newest int64  `json:"newest,omitempty"`

	Held  []Record `json:"held,omitempty"`
	Lives []*Life  `json:"lives,omitempty"`
}

// Process turns the records of one file into operations.
type Process struct {
	State
	cfg  Config
	sink Sink
}

// NewProcess returns a process that goes on from a state; the zero state is the
// beginning of a file.
func NewProcess(cfg Config, s State, sink Sink) *Process {
	return &Process{State: s, cfg: cfg, sink: sink}
}

// Add takes the next record.
func (p *Process) Add(r *Record) {
	if p.Source.PID != 0 && (p.Source.PID != r.Source.PID || p.Source.Host != r.Source.Host) {
		p.End()
	}
	p.Source = r.Source
	if p.First == 0 {
		p.First = r.Source.Dumped
	}
	p.Newest = max(p.Newest, r.Source.Dumped)
	if p.World != "" {
		p.dispatch(r)
		return
	}
	p.Held = append(p.Held, *r)
	switch {
	case len(p.Held) >= p.cfg.MaxHeld:
		p.sink.Odd(OddHeld, 1)
		p.Decide()
	case p.Newest-p.First >= int64(p.cfg.WorldWait):
		p.Decide()
	}
}

// Decide chooses the world communicator from what has come: of those with as many
// ranks as the world, or else the most, the first by id, so that all ranks of a job
// choose the same.
func (p *Process) Decide() {
	if p.World != "" || len(p.Held) == 0 {
		return
	}
	best := &p.Held[0].Comm
	for i := range p.Held {
		if c := &p.Held[i].Comm; p.better(c, best) {
			best = c
		}
	}
	p.World, p.Size = best.ID, best.Ranks
	held := p.Held
	p.Held = nil
	for i := range held {
		if held[i].Comm.ID == p.World {
			p.life(held[i].Comm.Rank)
		}
	}
	for i := range held {
		p.dispatch(&held[i])
	}
}

func (p *Process) better(c, than *Comm) bool {
	if c.Ranks != than.Ranks {
		if full := c.Ranks == p.cfg.WorldSize; full || than.Ranks == p.cfg.WorldSize {
			return full
		}
		return c.Ranks > than.Ranks
	}
	return c.ID < than.ID
}

// maxLives bounds the ranks of one process: a node has fewer GPUs.
const maxLives = 64

// life returns what is kept of a rank; nil beyond the limit.
func (p *Process) life(rank int64) *Life {
	for _, l := range p.Lives {
		if l.Rank == rank {
			return l
		}
	}
	if len(p.Lives) >= maxLives {
		return nil
	}
	l := &Life{Rank: rank}
	p.Lives = append(p.Lives, l)
	return l
}

func (p *Process) dispatch(r *Record) {
	if r.Kind == Proxy {
		p.sink.Odd(OddNotMapped, 1)
		return
	}
	l := p.lifeOf(r)
	if l == nil {
		return
	}
	rank := p.rank(l)
	p.sink.Record(&rank, r)
	switch {
	case r.Kind == Dump:
	case !r.Timed():
		p.sink.Odd(OddWithoutTime, 1)
	case p.cfg.Anchor.Function == "":
		p.emit(&rank, r, model.Optional[int64]{}, l.keys())
	default:
		p.hold(l, r)
	}
}

// lifeOf returns whose record it is: a rank of the world communicator is the global
// one, and all else that a process of one rank does is that rank's.
func (p *Process) lifeOf(r *Record) *Life {
	if r.Comm.ID == p.World {
		l := p.life(r.Comm.Rank)
		if l == nil {
			p.sink.Odd(OddRanks, 1)
		}
		return l
	}
	if r.Comm.Ranks > p.Size {
		p.sink.Odd(OddLarger, 1)
	}
	if len(p.Lives) != 1 {
		p.sink.Odd(OddAmbiguous, 1)
		return nil
	}
	return p.Lives[0]
}

func (p *Process) rank(l *Life) model.Rank {
	size := p.Size
	if p.cfg.WorldSize > 0 {
		size = p.cfg.WorldSize
	}
	name := p.cfg.JobName
	if name == "" {
		name = p.cfg.JobID
	}
	return model.Rank{
		JobName: name, JobID: p.cfg.JobID, Incarnation: model.Incarnation(model.World{CommHash: p.World}),
		Rank: l.Rank, WorldSize: model.Some(size), HostName: p.Source.Host, PID: model.Some(p.Source.PID),
		ClockID: "host:" + p.Source.Host + "/?/realtime", // no line tells the boot
	}
}

// Settle hands on the steps that are over. It is to be called when all has been added
// that there is for now: Inspector writes communicator by communicator, so that what
// belongs together stands apart in a dump.
func (p *Process) Settle() {
	for _, l := range p.Lives {
		p.settle(l, false)
	}
}

// End hands on all that is held, and forgets the process.
func (p *Process) End() {
	p.Decide()
	for _, l := range p.Lives {
		p.settle(l, true)
	}
	p.State = State{}
}

// EnvJobID names the job over the names of folders.
const EnvJobID = "LOCKSTEP_JOB_ID"

// folderPrefix is what Inspector puts before Slurm's number in the folder's name.
const folderPrefix = "nccl-inspector-"

// JobID returns the id of a file's job: as configured, else the environment's, else
// Slurm's number in the name of the file's folder, else that name.
func JobID(configured, file string) string {
	if configured != "" {
		return configured
	}
	if id := os.Getenv(EnvJobID); id != "" {
		return id
	}
	dir := filepath.Dir(file)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	name := filepath.Base(dir)
	if id, ok := strings.CutPrefix(name, folderPrefix); ok && id != "" {
		return id
	}
	return name
}
