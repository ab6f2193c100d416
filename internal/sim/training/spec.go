// SPDX-License-Identifier: Apache-2.0

package training

import (
	"fmt"
	"slices"
)

// Spec describes a job. The zero value of what is not needed means: not there.
type Spec struct {
	Name    string  `yaml:"name"`
	Layout  Layout  `yaml:"layout"`
	Noise   Noise   `yaml:"noise"`
	Steps   int     `yaml:"steps"`
	Faults  []Fault `yaml:"faults"`
	Sync    string  `yaml:"sync"`    // SyncStep (also "") or SyncLag
	Witness Witness `yaml:"witness"` // "" is kineto
	// Missing is the share of ranks of which nothing is seen, Lost that of operations,
	// Late that of ranks' steps that come after the next one's.
	Missing float64 `yaml:"missing"`
	Lost    float64 `yaml:"lost"`
	Late    float64 `yaml:"late"`
	Clock   Clock   `yaml:"clock"`
	// Work: operations carry their tokens and bytes, as few sources can tell.
	Work bool `yaml:"work"`
}

// Layout is how the model is divided. Ranks are numbered as Megatron does: tensor
// parallel ones are neighbours, then data parallel ones, then stages.
type Layout struct {
	DP           int  `yaml:"dp"`
	PP           int  `yaml:"pp"`
	TP           int  `yaml:"tp"`
	EP           int  `yaml:"ep"`     // experts' ranks among the data-parallel ones
	Chunks       int  `yaml:"chunks"` // of the model on each stage; more than one is interleaved
	Microbatches int  `yaml:"microbatches"`
	Layers       int  `yaml:"layers"` // on each stage and chunk
	Buckets      int  `yaml:"buckets"`
	FSDP         bool `yaml:"fsdp"`
	// Coarse: three kernels stand for a layer, so that large jobs stay small.
	Coarse  bool `yaml:"coarse"`
	PerNode int  `yaml:"per_node"`
	// Scale is on the length of kernels, as a smaller microbatch is.
	Scale float64 `yaml:"scale"`
}

// Ranks returns how many ranks there are.
func (l Layout) Ranks() int { return l.DP * l.PP * l.TP }

// Noise is what differs without anybody's fault.
type Noise struct {
	Kernel  float64 `yaml:"kernel"` // sigma of the lognormal factor on each kernel
	Chip    float64 `yaml:"chip"`   // sigma of the constant factor on each device
	Tails   Tails   `yaml:"tails"`
	Launch  float64 `yaml:"launch"`  // sigma of the lognormal factor on each launch
	Hiccup  float64 `yaml:"hiccup"`  // share of launches that take 0.1 to 1 ms
	Data    float64 `yaml:"data"`    // sigma of the lognormal factor on data loading
	Network float64 `yaml:"network"` // sigma of the lognormal factor on each transfer
	Drift   float64 `yaml:"drift"`   // amplitude of each device's slow change, by temperature
	// SeqLen is the sigma of the lognormal factor on the attention of each microbatch
	// of each replica, Experts that on what each rank's experts get in each layer and step.
	SeqLen  float64 `yaml:"seqlen"`
	Experts float64 `yaml:"experts"`
	Beside  float64 `yaml:"beside"` // by how much communication slows what is computed beside it
}

// Tails are kernels that take a multiple of their time.
type Tails struct {
	Share float64 `yaml:"share"`
	Low   float64 `yaml:"low"`
	High  float64 `yaml:"high"`
	Alpha float64 `yaml:"alpha"` // of the Pareto law between Low and High
	Most  float64 `yaml:"most"`  // s that a kernel is longer at most; 0 is no limit
}

// DefaultNoise is the noise of every scenario that names none of its own.
func DefaultNoise() Noise {
	return Noise{
		Kernel: 0.03, Chip: 0.007, Tails: Tails{Share: 0.01, Low: 2, High: 10, Alpha: 2, Most: 0.0005},
		Launch: 0.3, Hiccup: 0.0005, Data: 0.15, Network: 0.05, Drift: 0.003, SeqLen: 0.03, Experts: 0.1, Beside: 0.08,
	}
}

// Clock is how far the hosts' clocks are from true time.
type Clock struct {
	Error float64 `yaml:"error"` // s, largest offset of a host
	Drift float64 `yaml:"drift"` // ppm, largest drift of a host
	// RawGPU: what the device did is stamped by the device's own clock, which is up to
	// a second from the host's, and says so.
	RawGPU bool `yaml:"raw_gpu"`
}

// How the host waits for its device.
const (
	SyncStep = "step" // reads a value at the end of each step
	SyncLag  = "lag"  // the value of the step before
)

// Witness is who records the job: a row of the document of capabilities.
type Witness string

// Witnesses. The first five are cumulative.
const (
	HostEvents     Witness = "host_events"     // that communication was enqueued
	KernelChannels Witness = "kernel_channels" // and when its kernels ran
	ProxySteps     Witness = "proxy_steps"     // and waits on the wire
	Scopes         Witness = "scopes"          // and what the host was in
	CUPTI          Witness = "cupti"           // and all kernels
	Kineto         Witness = "kineto"          // all kernels, the profiler's own scopes, no waits on the wire
)

// Witnesses are all of them.
func Witnesses() []Witness {
	return []Witness{HostEvents, KernelChannels, ProxySteps, Scopes, CUPTI, Kineto}
}

// Fault is one thing that is wrong, or one imbalance.
type Fault struct {
	Family   string  `yaml:"family"`
	Severity float64 `yaml:"severity"` // a factor or s, as the family has it
	Count    int     `yaml:"count"`    // of ranks, links or nodes; 0 is 1
	From     int64   `yaml:"from"`     // first step
	To       int64   `yaml:"to"`       // last step; 0 is the job's last
	Every    int64   `yaml:"every"`    // steps; of what is not in each
	// Ranks are the places; none lets the seed choose.
	Ranks []int64 `yaml:"ranks"`
}

// What a job may have at most. The last is of each of microbatches, chunks, layers
// and buckets.
const (
	maxRanks = 1 << 20
	maxSteps = 1 << 20
	maxParts = 1 << 10
)

// filled returns the specification with its defaults in place.
func (s Spec) filled() (Spec, error) {
	l := &s.Layout
	for _, n := range []*int{&l.DP, &l.PP, &l.TP, &l.EP, &l.Chunks, &l.Microbatches, &s.Steps} {
		*n = max(*n, 1)
	}
	def := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	def(&l.Layers, 6)
	def(&l.Buckets, 4)
	def(&l.PerNode, 8)
	if l.Scale <= 0 {
		l.Scale = 1
	}
	if s.Witness == "" {
		s.Witness = Kineto
	}
	if s.Sync == "" {
		s.Sync = SyncStep
	}
	return s, s.check()
}

func (s *Spec) check() error {
	l := s.Layout
	switch {
	case l.DP > maxRanks || l.PP > maxRanks || l.TP > maxRanks || l.Ranks() > maxRanks:
		return fmt.Errorf("check job: got %d x %d x %d ranks; want at most %d", l.DP, l.PP, l.TP, maxRanks)
	case max(l.Chunks, l.Microbatches, l.Layers, l.Buckets) > maxParts:
		return fmt.Errorf("check job: got %d chunks, %d microbatches, %d layers, %d buckets; want at most %d", l.Chunks, l.Microbatches, l.Layers, l.Buckets, maxParts)
	case s.Steps > maxSteps:
		return fmt.Errorf("check job: got %d steps; want at most %d", s.Steps, maxSteps)
	case l.DP%l.EP != 0:
		return fmt.Errorf("check job: got %d data-parallel ranks in expert groups of %d; want a multiple", l.DP, l.EP)
	case l.Chunks > 1 && (l.PP < 2 || l.Microbatches%l.PP != 0):
		return fmt.Errorf("check job: got %d microbatches over %d interleaved stages; want a multiple, and 2 stages", l.Microbatches, l.PP)
	case l.FSDP && (l.PP > 1 || l.TP > 1 || l.EP > 1):
		return fmt.Errorf("check job: got fsdp beside pp %d, tp %d, ep %d; want it alone", l.PP, l.TP, l.EP)
	case !slices.Contains(Witnesses(), s.Witness):
		return fmt.Errorf("check job: got witness %q; want one of %v", s.Witness, Witnesses())
	case s.Sync != SyncStep && s.Sync != SyncLag:
		return fmt.Errorf("check job: got sync %q; want %q or %q", s.Sync, SyncStep, SyncLag)
	}
	for i := range s.Faults {
		if err := s.Faults[i].check(s); err != nil {
			return err
		}
	}
	return nil
}
