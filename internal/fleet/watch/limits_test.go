// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

func TestLimitsOfNodes(t *testing.T) {
	r := newRig(func(c *Config) { c.MaxNodes, c.MaxVersions = 2, 3 }, oldDriver, oldDriver, oldDriver)
	r.tell()
	assert.EqualValues(t, 1, r.Stats().NodesRefused)
	for i := range int64(4) {
		o := version(0, model.VersionNICFirmware, "1", 2)
		o.Unit, o.Model, o.Of = fmt.Sprint(i), "board", 4
		r.observe(&o)
	}
	assert.EqualValues(t, 3, r.Stats().VersionsRefused)
	assert.Equal(t, 3, r.held)
	o := version(0, model.VersionNICFirmware, "1", 3)
	o.Model = "board"
	r.observe(&o)
	assert.Equal(t, 3, r.held, "a part that was never whole makes room")
	r.drivers = nil
	r.pass(time.Hour)
	assert.Zero(t, r.held)
	assert.Empty(t, r.nodes)
}

func TestLimitsOfJobs(t *testing.T) {
	r := newRig(func(c *Config) { c.MaxJobs, c.MaxRanks, c.MaxComms, c.MaxMembers = 2, 6, 3, 5 })
	p := plan{"a", []int{0, 1, 2}, [][]int64{{0, 1, 2}, {0, 1}, {0, 2}}}
	r.states(&p)
	assert.Equal(t, []int{3, 2, 5}, []int{r.ranks, r.comms, r.members})
	assert.EqualValues(t, 2, r.Stats().CommsRefused, "of members; each of both says it")
	r.now = r.now.Add(time.Second)
	q := plan{"b", []int{0, 1, 2, 3, 4}, [][]int64{{0, 1, 2, 3}}}
	r.states(&q)
	assert.EqualValues(t, 1, r.Stats().JobsEvicted)
	assert.Nil(t, r.Watch.jobs["life of a"], "it held most members")
	assert.Equal(t, []int{5, 1, 4}, []int{r.ranks, r.comms, r.members})
	more := plan{"b", []int{0, 1, 2, 3, 4, 5, 6, 7}, nil}
	r.states(&more)
	assert.EqualValues(t, 2, r.Stats().RanksRefused, "of the job that holds most itself")
	for _, name := range []string{"c", "d", "e"} {
		s := state(&plan{name, []int{0}, nil}, 0)
		r.now = r.now.Add(time.Second)
		r.AddState(&s, r.now)
	}
	assert.EqualValues(t, 3, r.Stats().JobsEvicted, "of b for its ranks, of c for its place")
	assert.Equal(t, []int{2, 0, 0}, []int{r.ranks, r.comms, r.members})
	s := state(&plan{"e", []int{0}, nil}, 0)
	for _, members := range [][]int64{{0, -1}, {-1, 0}} {
		s.Comms = []model.CommState{{Comm: model.Comm{ID: "c", Rank: model.Some[int64](7)}, Members: members}}
		r.AddState(&s, r.now)
		assert.Zero(t, r.comms)
	}
}

// A rank says of its communicator how many members it has, in a few bytes.
func TestWatch_CommunicatorLargerThanEveryJob_IsRefused(t *testing.T) {
	r := newRig(nil)
	for i := range 20 {
		r.jobs = append(r.jobs, plan{fmt.Sprint("quiet ", i), []int{0, 1}, [][]int64{{0, 1}}})
	}
	r.tell()
	s := state(&plan{"new", []int{0}, nil}, 0)
	s.Comms = []model.CommState{{Comm: model.Comm{ID: "0x1", Rank: model.Some[int64](0), Size: model.Some(int64(r.cfg.MaxMembers))}}}
	r.AddState(&s, r.now)
	assert.Equal(t, []int{21, 20, 40}, []int{len(r.Watch.jobs), r.comms, r.members})
	assert.EqualValues(t, 1, r.Stats().CommsRefused)
	assert.Zero(t, r.Stats().JobsEvicted)
}

func TestDefaultLimits_256Jobs_Fit(t *testing.T) {
	r := newRig(nil)
	run := func(job int) {
		s := state(&plan{fmt.Sprint("job ", job), []int{0}, nil}, 0)
		r.now = r.now.Add(time.Second)
		r.AddState(&s, r.now)
	}
	for job := range 256 {
		run(job)
	}
	assert.Zero(t, r.Stats().JobsEvicted)
	run(256)
	assert.EqualValues(t, 1, r.Stats().JobsEvicted)
}

func TestLimitOfEpisodes(t *testing.T) {
	r := newRig(func(c *Config) { c.MaxEpisodes = 1 }, oldDriver, newDriver)
	r.jobs = []plan{{"a", []int{0, 1}, [][]int64{{0, 1}}}, {"b", []int{0, 1}, [][]int64{{0, 1}}}}
	assert.Len(t, r.pass(30*time.Minute), 1)
	assert.EqualValues(t, 1, r.Stats().Withheld, "once")
	r.jobs = r.jobs[1:]
	assert.Len(t, r.pass(30*time.Minute), 2, "the one ends, the other finds room")
	assert.Equal(t, "b", r.Standing(r.now)[0].JobID)
}

func TestVersionsThatAreRefused(t *testing.T) {
	r := newRig(nil)
	for name, change := range map[string]func(*model.VersionObservation){
		"domain":   func(o *model.VersionObservation) { o.Domain = "weather" },
		"version":  func(o *model.VersionObservation) { o.Version = "" },
		"of":       func(o *model.VersionObservation) { o.Of = maxEntries + 1 },
		"none":     func(o *model.VersionObservation) { o.Of = 0 },
		"node":     func(o *model.VersionObservation) { o.HostID, o.HostName = "", "" },
		"revision": func(o *model.VersionObservation) { o.Revision = 0 },
		"board":    func(o *model.VersionObservation) { o.Domain = model.VersionVBIOS },
	} {
		before := r.Stats().Refused
		o := version(0, model.VersionKernelDriver, oldDriver, 1)
		change(&o)
		r.observe(&o)
		assert.Equal(t, before+1, r.Stats().Refused, name)
	}
	o := version(0, model.VersionKernelDriver, oldDriver, 1)
	o.Of = 2
	r.observe(&o)
	before := r.Stats().Refused
	o.Of = 3
	r.observe(&o)
	assert.Equal(t, before+1, r.Stats().Refused, "a look is of so many, or of so many")
}

func TestValidate(t *testing.T) {
	good := NewDefaultConfig()
	require.NoError(t, good.Validate())
	sets := func(sets ...[]string) func(*Config) {
		return func(c *Config) { c.Compatible = map[model.VersionDomain][][]string{model.VersionKernel: sets} }
	}
	for want, change := range map[string]func(*Config){
		"check settle: got 0s; want at least 1s, with a unit":                                         func(c *Config) { c.Settle = 0 },
		"check silent: got 1s; want at least settle":                                                  func(c *Config) { c.Silent = time.Second },
		"check max_nodes: got 0; want at least 1":                                                     func(c *Config) { c.MaxNodes = 0 },
		"check max_versions: got 0; want at least 1":                                                  func(c *Config) { c.MaxVersions = 0 },
		"check max_jobs: got 0; want at least 1":                                                      func(c *Config) { c.MaxJobs = 0 },
		"check max_ranks: got 0; want at least 1":                                                     func(c *Config) { c.MaxRanks = 0 },
		"check max_communicators: got 0; want at least 1":                                             func(c *Config) { c.MaxComms = 0 },
		"check max_members: got 0; want at least 1":                                                   func(c *Config) { c.MaxMembers = 0 },
		"check max_findings: got 0; want at least 1":                                                  func(c *Config) { c.MaxEpisodes = 0 },
		"check compatible: kernel: set 0: got 0 versions; want 1 to 256":                              sets([]string{}),
		`check compatible: kernel: set 1: got "5.*.0"; want a version, or the beginning of one and *`: sets([]string{"*"}, []string{"5.*.0"}),
		`check compatible: kernel: set 0: got ""; want a version, or the beginning of one and *`:      sets([]string{""}),
		"check compatible: kernel: got 65 sets; want at most 64": func(c *Config) {
			for range 65 {
				sets(append(c.Compatible[model.VersionKernel], []string{"*"})...)(c)
			}
		},
	} {
		c := NewDefaultConfig()
		change(&c)
		require.EqualError(t, c.Validate(), want)
	}
	c := NewDefaultConfig()
	c.Compatible = map[model.VersionDomain][][]string{"weather": {{"*"}}}
	require.ErrorContains(t, c.Validate(), "check compatible: weather: got no domain of versions; want one of [nvidia_kernel_driver")
}

// domains is as many as there are.
func TestDomains(t *testing.T) {
	assert.Len(t, model.VersionDomains, domains)
}
