// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"math"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Truth is what is wrong with a job.
type Truth struct {
	// Culprits are all that is at fault. Empty for a healthy job and for one that has
	// an imbalance only.
	Culprits []Culprit
	// Imbalances are what costs time and is nobody's fault: a stage, amounts of work,
	// pauses that rotate, the whole job, a switch.
	Imbalances []Culprit
}

// Culprit is one thing that is wrong.
type Culprit struct {
	Family string // of faults, as the scenario file names it: gpu_clock, one_kernel, ...
	Class  string // model.Class*
	Cause  string // model.Cause*, "" where it is none of these
	// Ranks are those at fault; of a link, its sender, or of what a card receives, that
	// card's. Of an imbalance, those concerned, or none where it rotates.
	Ranks []int64
	// Also are ranks that send to a card that receives slowly. It is they that wait on the
	// wire, whichever end is at fault, so that naming either is right. Whoever a slow
	// sender sends to is a victim.
	Also        []int64
	Host        string   // of class node
	Stage       int      // of class stage_imbalance; else -1
	Peer        int64    // of class link, the receiver where it is one pair; else -1
	Comms       []string // of a link: communicators that are slower by it
	Ops         []string // comparison keys (or scopes) in which the excess lies; any of them is right
	First, Last int64    // steps
	// Cost is s per step from First to Last: the step's time less that of the same seed
	// without this culprit, all ranks of it together.
	Cost float64
	// Slowdown is the factor on the culprit's own time, where the family has one.
	Slowdown float64
	// Unseen: nothing was recorded of any of its ranks.
	Unseen bool
	// BuiltIn: every job of this layout has it. Its cost is not known.
	BuiltIn bool

	fault int // index of the specification's
}

// Step is one step of a job.
type Step struct {
	N       int64
	Seconds float64 // true length: from the end of the step before to this one's, over all ranks
	job     *Job
}

// Ops returns the operations of a rank as its witness recorded them, by start, with the
// operation of kind step last; nil where the rank is missing. The slice is valid until
// the next call, and only until the next step.
func (s *Step) Ops(rank int) []model.Op { return s.job.ops(s, rank) }

// Late reports whether what a rank recorded of this step is to be delivered after the
// next step's.
func (s *Step) Late(rank int) bool {
	j := s.job
	return j.spec.Late > 0 && unit(hash(hash(j.seed, forLate, uint64(rank)), uint64(s.N), 0)) < j.spec.Late
}

// Job is a simulated job.
type Job struct {
	grid
	spec     Spec
	seed     uint64
	given    uint64 // seed, as it was given
	skip     int    // fault that is left out, none
	ranks    []model.Rank
	comms    [commKinds][]communicator
	programs []*program // by stage
	faults   []placed

	// What is so in this step.
	n         int64
	effects   []effect // by rank
	harmed    []int
	wires     []wire
	slow      [commPP][]float64 // by kind and group: factor of its slowest hop
	slowed    [][2]int
	seqSigma  float64
	tokSigma  float64
	hot       int
	hotFactor float64
	hotBlind  bool
	pairs     []float64 // by replica and microbatch: what attention costs
	tokens    []float64
	load      []float64 // by data-parallel rank and layer: what experts got

	states    []state
	stride    int
	times     []times // by rank and item
	meetings  []meeting
	base      [commKinds]int // where meetings of the kind begin
	slots     [commKinds]int // in each communicator; of messages, for each receiver
	doublings [commPP]float64
	runnable  []int32
	end       float64

	watch observer
}

// state is where a rank is.
type state struct {
	host    float64 // time of its host, ns
	free    [streams]float64
	last    [streams]int32 // latest item of the stream whose end is not known yet, none
	pc      int32
	waiting int32 // next rank that waits for the same meeting, plus one
	stage   int32
	chip    float64
	inside  [8]int32 // communication that may run beside computing
	insides int8
	paused  [2]float64
	kept    [2]float64
	begin   float64
	before  float64 // end of the device's step before
	device  float64
	draws   uint64
	slowed  float64 // factor on all kernels in this step
	thread  model.Optional[int64]
	gpu     string // its device's clock
}

// times are those of an item, ns of true time.
type times struct{ launch, start, end float64 }

// meeting is one rendezvous.
type meeting struct {
	last, end float64 // arrival; end is 0 until all have come
	arrived   int32
	waiters   int32 // first rank that waits, plus one
}

// New returns a job that has not begun.
func New(spec Spec, seed uint64) (*Job, error) { return newJob(spec, seed, none) }

func newJob(spec Spec, seed uint64, skip int) (*Job, error) {
	spec, err := spec.filled()
	if err != nil {
		return nil, err
	}
	j := &Job{spec: spec, seed: mix(seed), given: seed, skip: skip, n: -1}
	j.grid = grid{spec.Layout, spec.Layout.Ranks()}
	incarnation := model.Incarnation(model.World{CommHash: fmt.Sprintf("%s/%d", spec.Name, seed)})
	j.ranks = j.describe(spec.Name, incarnation)
	j.comms = j.communicators(incarnation)
	if err := j.write(); err != nil {
		return nil, err
	}
	j.prepare()
	return j, nil
}

// write writes the programs and places the faults.
func (j *Job) write() error {
	taken := map[int]bool{}
	longer := map[int]int{}
	var rest []int
	j.faults = make([]placed, len(j.spec.Faults))
	for i, f := range j.spec.Faults {
		if f.Family != Stage {
			rest = append(rest, i)
			continue
		}
		j.faults[i], _ = j.place(i, f, taken)
		if i != j.skip {
			longer[j.faults[i].stage] += int(math.Ceil(f.Severity * float64(j.Layers)))
		}
	}
	for s := range j.PP {
		switch {
		case j.PP > 1:
			j.programs = append(j.programs, staged(&j.grid, s, j.Layers+longer[s]))
		case j.FSDP:
			j.programs = append(j.programs, sharded(&j.grid))
		default:
			j.programs = append(j.programs, flat(&j.grid))
		}
	}
	for _, i := range rest {
		var err error
		if j.faults[i], err = j.place(i, j.spec.Faults[i], taken); err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) prepare() {
	for _, p := range j.programs {
		j.stride = max(j.stride, len(p.items))
		for k := range commKinds {
			j.slots[k] = max(j.slots[k], int(p.slots[k]))
		}
	}
	total := 0
	for k := range commKinds {
		j.base[k] = total
		places := j.groups(k)
		if k == commPP {
			places = j.world
		}
		total += places * j.slots[k]
	}
	for k := range commPP {
		j.slow[k] = make([]float64, j.groups(k))
		fill(j.slow[k], 1)
		j.doublings[k] = math.Ceil(math.Log2(float64(j.size(k))))
	}
	j.meetings = make([]meeting, total)
	j.times = make([]times, j.world*j.stride)
	j.effects = make([]effect, j.world)
	fill(j.effects, unharmed)
	j.states = make([]state, j.world)
	for r := range j.states {
		s := &j.states[r]
		s.stage, s.chip = int32(j.pp(r)), lognormal(hash(j.seed, forChip, uint64(r)), j.spec.Noise.Chip)
		fill(s.last[:], none)
		s.thread, s.gpu = j.ranks[r].PID, "gpu:"+j.ranks[r].HWID+"/globaltimer"
	}
	j.pairs = make([]float64, j.DP*j.Microbatches)
	j.tokens = make([]float64, j.DP*j.Microbatches)
	j.load = make([]float64, j.DP*j.PP*(j.Layers+1))
	j.watch.init(j)
}

func fill[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}

func (j *Job) stageOf(r int) int { return int(j.states[r].stage) }

// Ranks returns the resources of all ranks, by rank.
func (j *Job) Ranks() []model.Rank { return j.ranks }

// Steps returns how many steps the job has.
func (j *Job) Steps() int { return j.spec.Steps }

// Next simulates the next step; false after the last.
func (j *Job) Next() (*Step, bool) {
	if j.n+1 >= int64(j.spec.Steps) {
		return nil, false
	}
	j.n++
	j.harm(j.n)
	j.divide()
	j.simulate()
	before := j.end
	for r := range j.states {
		j.end = max(j.end, j.states[r].host, j.states[r].device)
	}
	return &Step{N: j.n, Seconds: (j.end - before) / 1e9, job: j}, true
}

// divide draws the amounts of work of the step.
func (j *Job) divide() {
	n := &j.spec.Noise
	for i := range j.pairs {
		h := hash(hash(j.seed, forSeqLen, uint64(j.n)), uint64(i), 0)
		j.pairs[i] = lognormal(h, j.seqSigma)
		j.tokens[i] = lognormal(h, j.tokSigma)
		j.pairs[i] *= j.tokens[i]
	}
	if j.EP == 1 {
		return
	}
	for i := range j.load {
		j.load[i] = lognormal(hash(hash(j.seed, forExperts, uint64(j.n)), uint64(i), 0), n.Experts)
		if i%j.DP%j.EP == j.hot {
			j.load[i] *= j.hotFactor
		}
	}
}

// loadOf returns what a rank's experts get in a layer, of the usual amount.
func (j *Job) loadOf(r int, layer int32) float64 {
	return j.load[(int(layer)%(j.Layers+1)*j.PP+j.pp(r))*j.DP+j.dp(r)]
}
