// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
)

// Of a fleet that is mixed, only who computes with another version is told of, until it converges.
func TestOnlyWhoSpansIsTold(t *testing.T) {
	r := newRig(nil, oldDriver, oldDriver, newDriver, newDriver)
	r.jobs = []plan{
		{"old", []int{0, 1}, [][]int64{{0, 1}}},
		{"new", []int{2, 3}, [][]int64{{0, 1}}},
		{"both", []int{0, 1, 2}, [][]int64{{0, 1, 2}, {0, 1}, {1, 2}}},
	}
	assert.Empty(t, r.pass(10*time.Minute), "they were not seen at once for long enough")
	assert.Equal(t, []string{"both-0 nvidia_kernel_driver: 2×550.90.07, 1×580.126.09; minority [2] on [node2]"}, r.pass(time.Hour), "once")
	require.Len(t, r.Standing(r.now), 1)
	f := r.Standing(r.now)[0]
	ev := evidenceOf(&f)
	assert.Equal(t, []any{"both", "life of both", 3, 3, model.Some(int64(1)), time.Unix(1_759_999_800, 0).UnixNano()},
		[]any{f.JobID, f.Incarnation, ev.Ranks, ev.Known, f.RanksCount, f.Start})
	assert.Equal(t, 1, ev.Covers, "the communicator of ranks 1 and 2 spans both, too, and is told with it")
	assert.Equal(t, []Mixed{{"both", model.VersionKernelDriver, 1}}, r.Mixed())
	assert.Equal(t, []Count{{model.VersionKernelDriver, oldDriver, 2}, {model.VersionKernelDriver, newDriver, 2}}, r.Counts(r.now))

	r.drivers[0] = newDriver
	assert.Equal(t, []string{
		"both-0 nvidia_kernel_driver: 2×580.126.09, 1×550.90.07; minority [1] on [node1]",
		"old-0 nvidia_kernel_driver: 1×550.90.07, 1×580.126.09; minority [0] on [node0]",
	}, r.pass(time.Hour))
	r.drivers[1] = newDriver
	assert.Equal(t, []string{"both-0 nvidia_kernel_driver: 2×580.126.09, 1×550.90.07; ended", "old-0 nvidia_kernel_driver: 1×550.90.07, 1×580.126.09; ended"}, r.pass(time.Hour))
	assert.Empty(t, r.Standing(r.now))
	assert.Equal(t, []int64{2, 2}, []int64{r.Stats().Opened, r.Stats().Closed})
}

// What may mix is said in the configuration.
func TestCompatibleVersions(t *testing.T) {
	for _, c := range []struct {
		sets [][]string
		said int
	}{
		{nil, 1},
		{[][]string{{oldDriver, newDriver}}, 0},
		{[][]string{{"550.*", "580.126.*"}}, 0},
		{[][]string{{"*"}}, 0},
		{[][]string{{"550.*"}, {"*"}}, 1},
		{[][]string{{"550.90", newDriver}}, 1},
	} {
		r := newRig(func(cfg *Config) {
			cfg.Compatible = map[model.VersionDomain][][]string{model.VersionKernelDriver: c.sets}
		}, oldDriver, newDriver)
		r.jobs = []plan{{"job", []int{0, 1}, [][]int64{{0, 1}}}}
		assert.Len(t, r.pass(time.Hour), c.said, "%v", c.sets)
	}
}

// Members of which nothing is known accuse nobody; and where others differ, it is said of how many.
func TestMembersThatAreNotKnown(t *testing.T) {
	r := newRig(nil, oldDriver, "", "")
	r.jobs = []plan{{"job", []int{0, 1, 2}, [][]int64{{0, 1, 2}}}}
	assert.Empty(t, r.pass(time.Hour))
	r.drivers = append(r.drivers, newDriver) // somewhere in the fleet
	assert.Empty(t, r.pass(time.Hour))
	assert.EqualValues(t, 1, r.Stats().Abstained)
	r.drivers[2] = newDriver
	assert.Len(t, r.pass(time.Hour), 1)
	assert.Equal(t, 2, evidenceOf(&r.Standing(r.now)[0]).Known)

	r.drivers[2] = oldDriver
	assert.Equal(t, []string{"job-0 nvidia_kernel_driver: 1×550.90.07, 1×580.126.09; ended"}, r.pass(time.Hour),
		"one is not known, so that it ends only when it was not seen for long")
}

// A node that reboots is not known for a while: that mends nothing, and what it runs afterwards does.
func TestSilence(t *testing.T) {
	r := newRig(nil, oldDriver, newDriver)
	r.jobs = []plan{{"job", []int{0, 1}, [][]int64{{0, 1}}}}
	assert.Len(t, r.pass(30*time.Minute), 1)
	r.drivers[0] = ""
	assert.Empty(t, r.pass(30*time.Minute))
	assert.Len(t, r.Standing(r.now), 1)
	r.drivers[0] = newDriver
	assert.Len(t, r.pass(6*time.Minute), 1)
	assert.Empty(t, r.Standing(r.now))

	r.drivers[0] = ""
	assert.Empty(t, r.pass(3*time.Hour))
	assert.EqualValues(t, 1, r.Stats().Nodes, "it is forgotten")
}

// A job that ends takes what was said of it along.
func TestAJobThatEnds(t *testing.T) {
	r := newRig(nil, oldDriver, newDriver)
	r.jobs = []plan{{"job", []int{0, 1}, [][]int64{{0, 1}}}}
	assert.Len(t, r.pass(30*time.Minute), 1)
	r.jobs = nil
	assert.Equal(t, []string{"job-0 nvidia_kernel_driver: 1×550.90.07, 1×580.126.09; ended"}, r.pass(time.Hour))
	assert.Zero(t, r.Stats().Comms)
	assert.Zero(t, r.ranks+r.comms+r.members)
}

// What follows from the driver is not told beside it.
func TestWhatFollowsFromTheDriver(t *testing.T) {
	r := newRig(nil, oldDriver, newDriver)
	r.jobs = []plan{{"job", []int{0, 1}, [][]int64{{0, 1}}}}
	cuda := func(a, b string) {
		for i, v := range []string{a, b} {
			o := version(i, model.VersionCUDA, v, r.revision+1)
			r.observe(&o)
		}
	}
	var said []string
	for range 20 {
		cuda("12.4", "13.0")
		said = append(said, r.pass(5*time.Minute)...)
	}
	assert.Equal(t, []string{"job-0 nvidia_kernel_driver: 1×550.90.07, 1×580.126.09; minority [1] on [node1]"}, said)
	r.drivers[1] = oldDriver // and yet the one is of another, as of a container
	said = nil
	for range 20 {
		cuda("12.4", "13.0")
		said = append(said, r.pass(5*time.Minute)...)
	}
	assert.Equal(t, []string{"job-0 nvidia_kernel_driver: 1×550.90.07, 1×580.126.09; ended", "job-0 cuda: 1×12.4, 1×13.0; minority [1] on [node1]"}, said)
}

// Firmware of different boards has nothing in common; of one board it has. Which of a node's
// differing units a rank uses is known of its GPU only.
func TestUnits(t *testing.T) {
	unit := func(node int, domain model.VersionDomain, unit, board, v string, of, revision int64) model.VersionObservation {
		o := version(node, domain, v, revision)
		o.Unit, o.Model, o.Of = unit, board, of
		return o
	}
	tell := func(t *testing.T, gpus []string, obs ...model.VersionObservation) []string {
		t.Helper()
		r := newRig(nil, oldDriver, oldDriver)
		var said []string
		for i := range 12 {
			for _, o := range obs {
				o.Revision = int64(i + 1)
				r.observe(&o)
			}
			for n := range int64(2) {
				s := state(&plan{"job", []int{0, 1}, [][]int64{{0, 1}}}, n)
				if gpus != nil {
					s.Rank.HWID = gpus[n]
				}
				r.AddState(&s, r.now)
			}
			said = append(said, r.pass(5*time.Minute)...)
		}
		return said
	}
	const nic, vbios = model.VersionNICFirmware, model.VersionVBIOS
	assert.Empty(t, tell(t, nil, unit(0, nic, "", "cx6", "20.1", 1, 0), unit(1, nic, "", "cx7", "28.1", 1, 0)))
	assert.Equal(t, []string{"job-0 nic_firmware of cx7: 1×28.1, 1×28.2; minority [1] on [node1]"},
		tell(t, nil, unit(0, nic, "", "cx7", "28.1", 1, 0), unit(1, nic, "", "cx7", "28.2", 1, 0)))
	two := []model.VersionObservation{
		unit(0, vbios, "GPU-a", "h100", "1", 2, 0), unit(0, vbios, "GPU-b", "h100", "2", 2, 0), unit(1, vbios, "", "h100", "1", 1, 0),
	}
	assert.Empty(t, tell(t, nil, two...))
	assert.Empty(t, tell(t, []string{"GPU-a", "GPU-c"}, two...))
	assert.Equal(t, []string{"job-0 gpu_vbios of h100: 1×1, 1×2; minority [0] on [node0]"}, tell(t, []string{"GPU-b", "GPU-c"}, two...))
	assert.Empty(t, tell(t, []string{"GPU-b", "GPU-c"}, two[1:]...), "a part of what was told was lost")
}

// NCCL's version is what each process recorded; what RAS says is of the one that was asked.
func TestNCCL(t *testing.T) {
	for _, c := range []struct {
		source  model.StateSource
		backend string
		said    []string
	}{
		{model.StateFlightRecorder, "nccl", []string{"job-0 nccl: 1×2.19.3, 1×2.20.5; minority [1] on [node1]"}},
		{model.StateFlightRecorder, "gloo", nil},
		{model.StateRAS, "nccl", nil},
	} {
		r := newRig(nil, "", "")
		var said []string
		for range 12 {
			for n := range int64(2) {
				s := state(&plan{"job", []int{0, 1}, [][]int64{{0, 1}}}, n)
				s.Source, s.LibVersion, s.Comms[0].Backend = c.source, []string{"2.19.3", "2.20.5"}[n], c.backend
				r.AddState(&s, r.now)
			}
			said = append(said, r.pass(5*time.Minute)...)
		}
		assert.Equal(t, c.said, said, "%s %s", c.source, c.backend)
	}
}

// What nodes tell of NCCL is of any process of theirs: it is counted, and makes up no finding, hides
// none, ends none, and is nothing that is not known.
func TestNCCLAsNodesTellIt(t *testing.T) {
	const older, newer = "2.19.3", "2.20.5"
	const mixed = "job-0 nccl: 1×2.19.3, 1×2.20.5"
	for name, c := range map[string]struct {
		nodes, processes [2]string // empty: nothing is told, or recorded
		said             []string
	}{
		"nodes differ, and processes recorded nothing": {[2]string{older, newer}, [2]string{}, nil},
		"nodes differ, and a process recorded nothing": {[2]string{older, newer}, [2]string{older, ""}, nil},
		"nodes differ, and processes do not":           {[2]string{older, newer}, [2]string{newer, newer}, nil},
		"processes differ, and nodes do not":           {[2]string{older, older}, [2]string{older, newer}, []string{mixed + "; minority [1] on [node1]"}},
		"nodes have it the other way round":            {[2]string{newer, older}, [2]string{older, newer}, []string{mixed + "; minority [1] on [node1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(nil, oldDriver, oldDriver)
			said := r.library(c.nodes, c.processes)
			assert.Equal(t, c.said, said)
			assert.Zero(t, r.Stats().Abstained)
			nodes := map[string]int{}
			for _, n := range r.Counts(r.now) {
				if n.Domain == model.VersionNCCL {
					nodes[n.Version] += n.Nodes
				}
			}
			want := map[string]int{}
			for _, v := range c.nodes {
				want[v]++
			}
			assert.Equal(t, want, nodes)
			if c.said == nil {
				return
			}
			assert.Empty(t, r.library([2]string{newer, newer}, c.processes), "it goes on")
			assert.Equal(t, []string{mixed + "; ended"}, r.library(c.nodes, [2]string{newer, newer}), "processes end it")
		})
	}
}

// library lets an hour pass in which two nodes tell of NCCL, and of a job's processes on them those that
// recorded which they run.
func (r *rig) library(nodes, processes [2]string) (said []string) {
	for range 12 {
		for n := range int64(2) {
			o := version(int(n), model.VersionNCCL, nodes[n], r.revision+1)
			r.observe(&o)
			s := state(&plan{"job", []int{0, 1}, [][]int64{{0, 1}}}, n)
			if processes[n] != "" {
				s.Source, s.LibVersion = model.StateFlightRecorder, processes[n]
			}
			r.AddState(&s, r.now)
		}
		said = append(said, r.pass(5*time.Minute)...)
	}
	return said
}
