// SPDX-License-Identifier: Apache-2.0

package rankevents

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/lockstep-otel/lockstep/internal/gpuclock"
	"github.com/lockstep-otel/lockstep/internal/kernelname"
	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/ring"
)

// Kernels says what becomes of what the device ran.
type Kernels uint8

// The values of Config.Kernels.
const (
	KernelOperations Kernels = iota // operations, where the level has those of collectives
	KernelSummary                   // only folded into the step's summary
)

const (
	// maxHeldKernels bounds the kernels that wait for a clock, or for the step that
	// they were launched in: what a lane of the default size holds, 2 MiB.
	maxHeldKernels = 16384
	// maxKernelKeys leaves room among the keys for collectives and scopes.
	maxKernelKeys = 192
	// maxGrids bounds the texts of grids; beyond, kernels have none.
	maxGrids = 4096
	// firstKernels is for how long steps wait for the first kernel of a rank, ns: twice
	// what CUPTI takes to hand one over. Who launches nothing has none to wait for.
	firstKernels = 2_000_000_000
)

// kernelTable is what is known of the kernels of a rank.
type kernelTable struct {
	clock  gpuclock.Pairs
	held   []heldRecord
	begins beginTable
	newest int64  // latest step of a kernel that was placed; -1 none
	seenAt uint64 // when a kernel was read last; 0 never
	since  uint64 // when a step first waited for one; 0 never
	// launched: launches are recorded; without, kernels are of no step.
	launched bool
	keys     []kernelKey // by the code of their name
	grids    map[[3]uint32]string
}

func (t *kernelTable) init() {
	t.newest, t.grids = -1, map[[3]uint32]string{}
}

// restart forgets the numbering of steps.
func (t *kernelTable) restart() {
	t.newest = -1
	t.begins.forget()
}

// clockRecord takes a reading of CUPTI's clock.
func (r *Rank) clockRecord(rec *ring.Record) {
	c := rec.Clock()
	switch {
	case c.Source != ring.SourceCUPTI:
		r.stats.NotMapped++
	case c.Raw == 0 || c.CUPTI == 0 || c.Raw > r.now+future:
		r.stats.BadTimes++
	default:
		r.kernels.clock.Add(gpuclock.Pair{Host: c.Raw, Clock: c.CUPTI, Width: uint64(c.Width)})
	}
}

// holdKernel keeps a kernel until the lanes were drained: its step may have begun in
// a lane that is read later.
func (r *Rank) holdKernel(rec *ring.Record) {
	t := &r.kernels
	t.seenAt = r.now
	k := rec.Kernel()
	t.launched = t.launched || k.Launched
	if k.Start == 0 || k.End < k.Start || k.End > math.MaxInt64 || (k.Launched && k.Launch == 0) {
		r.stats.BadTimes++
		return
	}
	if len(t.held) >= maxHeldKernels {
		if t.clock.Len() == 0 {
			r.stats.KernelsWithoutClock++
			return
		}
		r.placeKernels(^uint64(0))
	}
	t.held = append(t.held, heldRecord{*rec, r.pass})
}

// placeKernels folds the kernels that were launched up to horizon, in the order of
// their launches: what began a step until then has been read.
func (r *Rank) placeKernels(horizon uint64) {
	t := &r.kernels
	if len(t.held) == 0 || t.clock.Len() == 0 {
		return
	}
	slices.SortFunc(t.held, func(a, b heldRecord) int {
		return cmp.Or(cmp.Compare(a.LaunchOrStart(), b.LaunchOrStart()), cmp.Compare(a.Record[2], b.Record[2]), cmp.Compare(a.Record[7], b.Record[7]))
	})
	r.trail.until = max(r.trail.until, min(horizon, r.now))
	kept := 0
	for i := range t.held {
		k := t.held[i].Kernel()
		r.steps.pass = t.held[i].pass
		if !r.placeKernel(&k, horizon) {
			t.held[kept] = t.held[i]
			kept++
		}
	}
	t.held = t.held[:kept]
	r.steps.pass = r.pass
}

// ran is when a kernel was launched and ran, MONOTONIC_RAW ns.
type ran struct {
	launch, start, end uint64
	bound              uint64 // half width of where start must be
}

// hostTimes puts a kernel on the host's clock; false where that cannot be done.
func (r *Rank) hostTimes(k *ring.Kernel) (t ran, ok bool) {
	clock := &r.kernels.clock
	var placed [3]bool
	t.start, t.bound, placed[0] = clock.Host(k.Start)
	t.end, _, placed[1] = clock.Host(k.End)
	placed[2] = true
	if k.Launched {
		t.launch, _, placed[2] = clock.Host(k.Launch)
		t.launch = min(t.launch, t.start)
	}
	t.end = max(t.end, t.start)
	return t, placed == [3]bool{true, true, true}
}

// placeKernel folds a kernel; false where the step of its launch may not be known yet.
func (r *Rank) placeKernel(k *ring.Kernel, horizon uint64) bool {
	t, ok := r.hostTimes(k)
	switch {
	case !ok:
		r.stats.KernelsWithoutClock++
	case t.end > r.now+future:
		r.stats.BadTimes++
	case t.launch > horizon:
		return false
	default:
		r.foldKernel(k, t)
	}
	return true
}

// foldKernel puts a kernel into the step that was current when the host launched it.
func (r *Rank) foldKernel(k *ring.Kernel, t ran) {
	n, known, forgotten := int64(0), false, false
	if k.Launched {
		n, known, forgotten = r.kernels.begins.of(t.launch)
	}
	if known {
		r.kernels.newest = max(r.kernels.newest, n)
	}
	if k.Communication { // the collective's own record tells of it
		r.stats.KernelsOfComm++
		return
	}
	r.stats.Operations++
	r.stats.Kernels++
	var s *step
	if known {
		s = r.room(n)
	}
	seq := r.trail.kernels + r.stats.Kernels // which no other has, where there is no step to count in
	switch {
	case s != nil:
		seq = s.addKernel(r.kernelKey(k), k, t, r)
	case known || forgotten:
		r.stats.Late++
	case !k.Launched:
		r.stats.KernelsWithoutLaunch++
	default:
		r.stats.WithoutStep++
	}
	if !r.emitsKernel(known) {
		return
	}
	op := r.next()
	r.kernelOp(op, k, t)
	op.Seq = seq
	if known {
		op.Step = model.Some(n)
	}
	if s != nil {
		s.emitted++
	}
}

// emitsKernel says whether kernels become operations; those of no step are of no use
// but to who wants all.
func (r *Rank) emitsKernel(inStep bool) bool {
	least := ring.LevelCollectives
	if !inStep {
		least = ring.LevelAll
	}
	return r.node.cfg.Kernels == KernelOperations && r.node.cfg.Level >= least
}

// addKernel folds a kernel and returns its number among those of its name.
func (s *step) addKernel(key int, k *ring.Kernel, t ran, r *Rank) int64 {
	of := s.key(key)
	seq := of.seq
	of.seq++
	s.ops++
	of.hist.Add(t.end-t.start, &r.steps.pages)
	if s.first == 0 || t.launch < s.first {
		s.first = t.launch
	}
	s.end = max(s.end, t.end)
	what := ranKernel
	if k.Copy || k.Set {
		what = ranCopy
	}
	s.witnessed = true
	s.keep(span{t.start, t.end, t.launch, what}, r)
	return seq
}

func (r *Rank) kernelName(k *ring.Kernel) string {
	name := r.src.String(k.Name)
	switch {
	case name != "":
		return name
	case k.Copy:
		return "copy"
	case k.Set:
		return "set"
	}
	return "kernel"
}

// kernelKey is by what kernels of a name are compared: what a library chose, as tile
// sizes, is not in it.
type kernelKey struct {
	text string // "" where it is not known yet
	id   int32  // plus one; 0 where no kernel of it was folded
}

// kernelKeyOf returns the key of a kernel, by the code of its name where it has one.
func (r *Rank) kernelKeyOf(k *ring.Kernel) *kernelKey {
	t := &r.kernels
	if k.Name == 0 || r.src.String(k.Name) == "" {
		return &kernelKey{text: r.kernelName(k)}
	}
	for len(t.keys) <= int(k.Name) {
		t.keys = append(t.keys, kernelKey{})
	}
	key := &t.keys[k.Name]
	if key.text == "" {
		key.text = kernelname.Key(r.kernelName(k))
	}
	return key
}

// kernelKey returns the number of a kernel's key.
func (r *Rank) kernelKey(k *ring.Kernel) int {
	key := r.kernelKeyOf(k)
	if key.id == 0 {
		key.id = int32(r.keys.idOf(key.text, maxKernelKeys)) + 1
	}
	return int(key.id - 1)
}

func (r *Rank) kernelOp(op *model.Op, k *ring.Kernel, t ran) {
	op.Kind, op.Name = model.KindCompute, r.kernelName(k)
	if key := r.kernelKeyOf(k).text; key != op.Name {
		op.Key = key
	}
	if k.Copy || k.Set {
		op.Kind = model.KindCopy
		op.WorkBytes = model.Some(int64(k.Bytes))
	} else {
		op.WorkGrid = r.grid(k.Grid)
	}
	op.Start, op.End = r.unix(t.start), r.unix(t.end)
	if k.Launched {
		op.Launch = model.Some(r.unix(t.launch))
	}
	op.Stream = model.Some(int64(k.Stream))
	if k.Correlation != 0 {
		op.Correlation = model.Some(int64(k.Correlation))
	}
	op.GraphCaptured = k.Graph
	if r.node.cfg.RawGPUClock {
		op.Start, op.End, op.ClockID = int64(k.Start), int64(k.End), r.gpuClockOf(k.GPU, "cupti")
		return
	}
	op.Clock = model.ClockNote{
		Offset:   model.Some(float64(op.Start-int64(k.Start)) * 1e-9),
		Bound:    model.Some(seconds(t.bound)),
		Timeline: r.clock, RawStart: model.Some(int64(k.Start)),
	}
}

// kernelDetail hands on a kernel that the level leaves in the ring.
func (r *Rank) kernelDetail(rec *ring.Record, since uint64) {
	k := rec.Kernel()
	t, ok := r.hostTimes(&k)
	if !ok || t.end < since || t.end > r.now+future || k.Communication || r.node.cfg.Kernels != KernelOperations {
		return
	}
	op := r.next()
	r.kernelOp(op, &k, t)
	op.Seq = int64(k.Correlation)
	if n, known, _ := r.kernels.begins.of(t.launch); k.Launched && known {
		op.Step = model.Some(n)
	}
}

// grid is the text of a grid, as traces of the same job by other sources have it.
func (r *Rank) grid(g [3]uint32) string {
	text, ok := r.kernels.grids[g]
	if !ok && g != [3]uint32{} && len(r.kernels.grids) < maxGrids {
		text = strconv.Itoa(int(g[0])) + "," + strconv.Itoa(int(g[1])) + "," + strconv.Itoa(int(g[2]))
		r.kernels.grids[g] = text
	}
	return text
}

// awaitsKernels says whether kernels of what has begun may still come: CUPTI hands
// them over late. One that was stopped has handed over all that it had.
func (r *Rank) awaitsKernels() bool {
	seen := r.kernels.seenAt
	switch {
	case r.node.cfg.Level < ring.LevelCollectives: // none is read
		return false
	case seen != 0 && !r.kernels.launched: // none can be placed
		return false
	}
	switch state, _ := r.src.CUPTI(); state {
	case ring.CUPTIActive:
		return r.mayComeAtAll()
	case ring.CUPTIUnasked: // another witness of kernels may not say how it is
		if r.src.Witnesses()&ring.WitnessCUPTI != 0 {
			return r.mayComeAtAll()
		}
		return seen != 0 && r.now < seen+uint64(r.node.cfg.StepDeadline)
	}
	return false
}

// mayComeAtAll says whether a rank whose kernels are witnessed may have any.
func (r *Rank) mayComeAtAll() bool {
	t := &r.kernels
	if t.seenAt != 0 {
		return true
	}
	if t.since == 0 && len(r.steps.open) > 0 && r.steps.begun() > r.steps.open[0].n {
		t.since = r.now
	}
	return t.since == 0 || r.now < t.since+firstKernels
}
