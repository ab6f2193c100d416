// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// Stats count what one rank's records came to.
type Stats struct {
	Records, Lost, Skipped int64
	Operations             int64 // folded
	Emitted                int64 // operations handed on, steps included
	WithoutStep            int64 // folded into no step
	Late                   int64 // of a step that was closed
	StepsClosed            int64
	StepsEvicted           int64 // closed for want of room
	StepsExpired           int64 // closed at the deadline
	SplitOverflow          int64 // operations left out of a split
	Renumbered             int64 // times that steps were numbered anew
	GroupsRebuilt          int64 // grouped messages that became one all_to_all
	OpenOverflow           int64 // operations in flight not told of
	EndsInferred           int64 // operations without an observed end
	ClockResets            int64
	BeforeAttach           int64 // records overwritten before the ring was first read
	Corrupt                int64 // words of lanes that no producer writes
	NoRank                 int64 // records of a process whose rank or clock is not known
	KeysOverflow           int64 // operation keys that share the key of others
	ClocksDisagree         int64 // 1 where the ring's clock pairs contradict the host's
	StepsUnfinished        int64 // open when the reading ended, left to the next reader
	BadTimes               int64 // records with times that cannot be
	NotMapped              int64 // records of kinds that become no operation
	Kernels                int64 // folded, copies and sets among them; also in Operations
	KernelsOfComm          int64 // those of communication libraries, of which collectives tell
	KernelsWithoutClock    int64 // left out: their times cannot be put on the host's clock
	KernelsWithoutLaunch   int64 // folded into no step: nobody saw their launch
	KernelClockSteps       int64 // times that their clock was seen to be stepped
	LinksDropped           int64 // spans that a step works for, beyond its bound
	LinksInvalid           int64 // links to no span
	ResumesInvalid         int64 // resumes without a step or a number
	FingerprintsInvalid    int64 // fingerprints without a step, a group or a slice
	Reread                 int64 // records that were counted by the reader before, and read once more
	StepsMissing           int64 // every record of them was overwritten before it was read
}

// Rank folds the records of one ring. It is not safe for concurrent use.
type Rank struct {
	node        *Node
	src         Source
	header      ring.Header
	clock       string
	fallbackJob string

	global     int64 // rank
	world      int32
	epoch      int64  // Unix ns less MONOTONIC_RAW
	ready      bool   // rank and epoch are known
	life       uint64 // world communicator that names the job's life; 0: none did
	firstOp    uint64 // when an operation was first seen, before ready
	worldComm  worldComm
	identity   model.Rank
	identified identityOf

	comms     []*commState // by index
	nameless  *commState   // of those without an entry
	lookedAt  uint64       // pass in which the table was read for one, looks times
	looks     int
	commsSeen []ring.Comm
	gpus      []ring.GPU
	fits      []*gpuclock.Fit // by index of the GPU
	keys      keyTable
	texts     [256]string // of codes of eight bits
	dtypes    [256]string
	handle    func(lane int, rec *ring.Record)

	steps   stepTable
	marked  bool // the program marks its steps
	anchor  anchorFinder
	pending []heldRecord // until their step is known, by enqueueing
	groups  groupTable
	kernels kernelTable

	slots     []ring.Slot
	frontiers []ring.Frontier
	pairs     []ring.ClockPair
	scopes    []ring.OpenScope
	stalls    stallTable
	standing  standing
	loaded    resumeState
	membersAt uint64 // when its communicators are told of next
	proxyKeys map[proxyKey]string
	closing   []Link
	pass      uint64
	now       uint64
	again     bool // records are read a second time, and nothing new is learnt of them
	gap       gap
	trail     trail
	silent    bool     // records are replayed whose operations were handed on
	unsent    model.Op // the operation that a replay fills and does not emit

	batch      Batch
	histograms []KeyHistogram
	emit       Emit
	stats      Stats
}

// identityOf is what an identity depends on that may change.
type identityOf struct {
	world  uint64
	global int64
	size   int32
	comms  int
}

// worldComm is the communicator that names the job's life.
type worldComm struct {
	hash  uint64
	index uint16
	size  int32
	ended bool
}

// Attach begins to fold a ring. job names the job where neither the
// configuration nor the job itself does.
func (n *Node) Attach(src Source, job string) *Rank {
	h := src.Header()
	r := &Rank{node: n, src: src, header: h, clock: hostClock(&h), fallbackJob: job, world: h.WorldSize, global: int64(h.Rank)}
	r.handle = r.record
	r.keys.init()
	r.steps.init(n.cfg.MaxOpenSteps, n.cfg.MaxStepOps, n.cfg.MaxStepBytes)
	r.anchor.init(n.cfg.Anchor)
	r.stalls.init()
	r.kernels.init()
	r.proxyKeys = map[proxyKey]string{}
	return r
}

// Header returns what the ring says of its process.
func (r *Rank) Header() *ring.Header { return &r.header }

// Identity returns who the rank is, as far as is known.
func (r *Rank) Identity() model.Rank {
	if known := (identityOf{r.life, r.global, r.world, len(r.commsSeen)}); known != r.identified || r.identity.JobID == "" {
		r.identity, r.identified = r.identify(), known
	}
	return r.identity
}

// Stats returns the counters.
func (r *Rank) Stats() Stats {
	s := r.stats
	for _, f := range r.fits {
		if f != nil {
			s.ClockResets += f.Stats().Resets
		}
	}
	s.KeysOverflow, s.KernelClockSteps = r.keys.overflowed, r.kernels.clock.Steps()
	return s
}

// Pass reads what has come and hands it on; now is in ns of MONOTONIC_RAW.
//
// Open slots are noted before the lanes are drained: whatever was enqueued before
// is then either among them or has been read.
func (r *Rank) Pass(now uint64, emit Emit) {
	r.now, r.emit = now, emit
	r.pass++
	if !r.refresh(false) {
		return
	}
	r.setOut()
	later := r.steps.begun()
	if n, ok := r.src.Step(); ok {
		later = max(later, n)
	}
	awaited := int64(maxStep)
	if r.awaitsKernels() {
		awaited = r.kernels.newest
	}
	r.slots = r.src.InFlight(r.slots[:0])
	horizon, oldest := r.inFlight()
	missing := r.drain(r.node.cfg.Level)
	r.place(horizon)
	r.flushGroups(false)
	if r.marked {
		horizon = r.now
	}
	r.placeKernels(horizon)
	r.lose(missing)
	if !r.marked { // what place lets begin has nothing of earlier steps in flight
		later = r.steps.begun()
	}
	for r.steps.closable(later, min(oldest, awaited)) {
		r.closeStep()
	}
	r.expire()
	r.stalled()
	r.watch()
	r.members()
	r.tellResume()
	r.flush()
}

// Finish hands on what is left of a rank that will write no more. died says that
// its process ended without closing the ring.
func (r *Rank) Finish(now uint64, died bool, emit Emit) {
	r.now, r.emit = now, emit
	r.pass++
	if !r.refresh(true) {
		return
	}
	r.setOut()
	r.slots = r.src.InFlight(r.slots[:0])
	missing := r.drain(r.node.cfg.Level)
	r.place(^uint64(0))
	r.flushGroups(true)
	r.placeKernels(^uint64(0))
	r.lose(missing)
	r.stats.KernelsWithoutClock += int64(len(r.kernels.held))
	r.kernels.held = r.kernels.held[:0]
	for len(r.steps.open) > 0 {
		r.closeStep()
	}
	r.tellResume()
	r.ended(died)
	if died {
		r.died()
	}
	r.flush()
}

// Leave hands on what has come from a process that goes on without us. Steps that
// are open are not told of: who reads the ring next sends them, whole.
func (r *Rank) Leave(now uint64, emit Emit) {
	r.Pass(now, emit)
	r.stats.StepsUnfinished += int64(len(r.steps.open))
}

// drain reads what has come, and returns how many records could not be read any more.
func (r *Rank) drain(level ring.Level) (missing int64) {
	missing = r.poll(level, r.handle)
	for _, f := range r.fits {
		if f != nil {
			f.Refit()
		}
	}
	return missing
}

// poll reads the lanes and returns how many records could not be read any more, of
// those since the ring was opened.
func (r *Rank) poll(level ring.Level, handle func(int, *ring.Record)) (missing int64) {
	c := r.src.Poll(level, handle)
	lost := int64(c.Lost - c.Before)
	r.stats.Records += int64(c.Read)
	r.stats.Reread += int64(c.Reread)
	r.stats.Lost += lost
	r.stats.BeforeAttach += int64(c.Before)
	r.stats.Skipped += int64(c.Skipped)
	r.stats.Corrupt += int64(c.Corrupt)
	return lost + int64(c.Gone)
}

// inFlight returns the time before which everything was enqueued that is not in
// flight, and the oldest step of what is.
func (r *Rank) inFlight() (horizon uint64, oldest int64) {
	horizon, oldest = r.now, maxStep
	for i := range r.slots {
		rec := &r.slots[i].Record
		horizon = min(horizon, rec.EnqueueBegin())
		if s, ok := rec.Step(); ok {
			oldest = min(oldest, int64(s))
		}
	}
	return horizon, oldest
}

func (r *Rank) unix(raw uint64) int64 { return int64(raw) + r.epoch }
