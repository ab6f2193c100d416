// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/lockstep-otel/lockstep/internal/desync"
	"github.com/lockstep-otel/lockstep/internal/sim/hang"
)

// EvidenceNames are the kinds of evidence, in the order of the tables.
var EvidenceNames = []string{"whole", "json", "only_active", "wrapped", "torn", "joined"}

// Selection says what is run. Empty lists mean all.
type Selection struct {
	Families, Layouts, Evidences []string
	Rates                        []int
	Seeds                        []uint64
	// Copied: no dump says when it was taken. Skew, where it is set, is within how long all are.
	Copied bool
	Skew   time.Duration
}

// Seeds that the work on the engine looks at, and those that are held out.
var (
	WorkSeeds = []uint64{1, 2, 1001, 1002, 2001, 2002, 3001, 3002, 3003, 3004, 4001, 4002, 4003, 4004}
	HeldSeeds = []uint64{5001, 5002, 5003, 5004}
)

// Case is one job under one evidence.
type Case struct {
	Family, Layout, Evidence string
	Rate                     int
	Seed                     uint64
	Outcome                  Outcome
	// Report, Truth and In are there where the selection is of few enough to be printed.
	Report *desync.Report
	Truth  hang.Truth
	In     *Input
}

// Name is how the case is run again.
func (c *Case) Name() string {
	return fmt.Sprintf("-family %s -layout %s -evidence %s -missing %d -seed %d", c.Family, c.Layout, c.Evidence, c.Rate, c.Seed)
}

// Wrong tells whether something wrong was said, or a fault kept silent about.
func (c *Case) Wrong() bool {
	o := &c.Outcome
	return o.Right < o.Decided || o.Victims > 0 || slices.Contains(o.Faults, Silent) || slices.Contains(o.Faults, Wronged)
}

func chosen(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }

// job is what a worker takes.
type job struct {
	family string
	layout hang.Layout
	seed   uint64
}

// mix makes a seed of what a case is, so that no two cases lose the same dumps.
func (j *job) mix(more ...string) uint64 {
	h := fnv.New64a()
	for _, s := range append([]string{j.family, j.layout.Name, strconv.FormatUint(j.seed, 10)}, more...) {
		_, _ = h.Write([]byte(s + "\x00"))
	}
	return h.Sum64()
}

func (s *Selection) jobs() (out []job) {
	for _, family := range append([]string{hang.Healthy}, hang.Families()...) {
		for _, l := range hang.Layouts {
			for _, seed := range s.Seeds {
				if chosen(s.Families, family) && chosen(s.Layouts, l.Name) {
					out = append(out, job{family, l, seed})
				}
			}
		}
	}
	return out
}

// Run judges all that is selected and hands each case to done, one at a time, in no order.
func Run(s *Selection, judge Judge, workers int, done func(Case)) error {
	todo := make(chan job)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	for range workers {
		wg.Go(func() {
			for j := range todo {
				cases, err := s.run(&j, judge)
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
				}
				for _, c := range cases {
					done(c)
				}
				mu.Unlock()
			}
		})
	}
	for _, j := range s.jobs() {
		todo <- j
	}
	close(todo)
	wg.Wait()
	return failed
}

func (s *Selection) run(j *job, judge Judge) (out []Case, err error) {
	run, err := hang.Run(j.layout, j.family, j.mix("job"))
	if errors.Is(err, hang.ErrNoPlace) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range EvidenceNames {
		for _, rate := range Rates {
			if name == "joined" && j.family != hang.WrongRoot && j.family != hang.HostStuck || !chosen(s.Evidences, name) || len(s.Rates) > 0 && !slices.Contains(s.Rates, rate) {
				continue
			}
			e := hang.Evidences[name]
			e.Missing = float64(rate) / 100
			if s.Skew > 0 {
				e.Skew = s.Skew
			}
			in, err := read(run, e, j.mix(name, strconv.Itoa(rate)), !s.Copied && (j.seed%2 == 0 || j.family == hang.Healthy))
			if err != nil {
				return out, err
			}
			if s.Copied {
				in.Doubt.TimesLost = "the files are copies"
			}
			if j.family != hang.Healthy && !in.open() {
				continue // nothing that is seen shows that it hangs
			}
			rep := judge(in)
			c := Case{Family: j.family, Layout: j.layout.Name, Evidence: name, Rate: rate, Seed: j.seed}
			c.Outcome = newBench(run, in, e).judge(rep)
			c.Report, c.Truth, c.In = rep, run.Truth(), in
			out = append(out, c)
		}
	}
	return out, nil
}
