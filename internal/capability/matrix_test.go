// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lockstep-otel/lockstep/internal/model"
	"github.com/lockstep-otel/lockstep/internal/tier"
)

// whole is how many jobs of each kind the table speaks of.
const whole = 10

// jobs returns how many jobs of each kind are simulated.
func jobs(t *testing.T) int {
	t.Helper()
	return tier.N(t, 1, whole)
}

// sight is jobs with a fault as a row sees them.
type sight struct {
	row   Row
	fault string
	shape shape
}

// seenBefore are the outcomes of jobs that several cells rest on.
var seenBefore sync.Map

// outcomes runs jobs and returns under what those at fault are named, sorted, with
// Nobody where a job ended without a finding. Nobody else may be named.
func outcomes(t *testing.T, row Row, f *fault, s shape) (out []string) {
	t.Helper()
	key := sight{row, f.name, s}
	if known, ok := seenBefore.Load(key); ok {
		return known.([]string)
	}
	for seed := range jobs(t) {
		found, over := diagnose(t, seen[row], *f, s, seed)
		assert.Positive(t, over, "seed %d: the engine must have had steps to judge", seed)
		if len(found) == 0 {
			out = append(out, Nobody)
		}
		for _, x := range found {
			assert.Equal(t, model.FindingStraggler, x.kind, "seed %d", seed)
			assert.Contains(t, judged, x.class, "seed %d", seed)
			assert.True(t, f.placed(&x), "seed %d: an innocent is named: %+v", seed, x)
			out = append(out, x.as())
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if !t.Failed() {
		seenBefore.Store(key, out)
	}
	return out
}

// placed reports whether a finding has the fault's place: it names a rank at fault, lists
// those concerned where it is of several, or names nobody where all are concerned.
func (f *fault) placed(x *told) bool {
	switch x.class {
	case model.ClassJitter, model.ClassJobWide:
		return x.rank < 0 && f.at == nil
	case model.ClassNode:
		return x.rank < 0 && x.host == hostOf(f.at[0]) && x.ranks == fmt.Sprint(f.at)
	case model.ClassWorkImbalance, model.ClassStageImbalance:
		return x.rank < 0 && x.ranks == fmt.Sprint(f.at)
	case model.ClassLink:
		return slices.Contains(f.at, int(x.rank)) && int(x.peer) == (culprit+1)%ranks
	}
	return slices.Contains(f.at, int(x.rank))
}

// as is the class, with its cause where that is known.
func (x *told) as() string {
	if x.cause == model.CauseUnknown {
		return x.class
	}
	return x.class + "/" + x.cause
}

// live are the rows that the engine judges.
var live = []Row{HostEvents, KernelChannels, ProxySteps, Scopes, CUPTI, Kineto}

// TestStragglers finds out each cell of kind straggler.
func TestStragglers(t *testing.T) {
	for _, c := range Classes() {
		if c.Kind != model.FindingStraggler {
			continue
		}
		t.Run(c.key(), func(t *testing.T) {
			scenes := scenesOf(c.key())
			require.NotEmpty(t, scenes, "no job with such a fault is simulated")
			for _, row := range live {
				t.Run(string(row), func(t *testing.T) {
					t.Parallel()
					var got []string
					for _, s := range scenes {
						got = append(got, outcomes(t, row, s.fault, s.shape)...)
					}
					slices.Sort(got)
					got = slices.Compact(got)
					cell, ok := Of(row, c)
					require.True(t, ok)
					assert.Equal(t, verdictOf(c, got), cell.Verdict, "told: %v", got)
					if cell.Told == nil {
						cell.Told = []string{Nobody}
					}
					holds(t, cell.Told, got)
				})
			}
		})
	}
}

// holds compares what was told of few jobs, or all that the table speaks of.
func holds(t *testing.T, want, got []string) {
	t.Helper()
	if jobs(t) >= whole {
		assert.Equal(t, want, got)
	}
	assert.Subset(t, want, got)
}

// judged are the classes that the engine tells of at all; TestStragglers finds no other.
var judged = []string{
	model.ClassCompute, model.ClassHost, model.ClassLink, model.ClassWorkImbalance, model.ClassStageImbalance,
	model.ClassKernelChoice, model.ClassJitter, model.ClassNode, model.ClassJobWide,
}

// verdictOf is what a cell of the class may claim, given under what those at fault
// were named.
func verdictOf(c Class, got []string) Verdict {
	truth := c.Name
	if c.Cause != "" {
		truth += "/" + c.Cause
	}
	switch {
	case slices.Equal(got, []string{truth}):
		return Decides
	case !slices.Equal(got, []string{Nobody}):
		return Bounds
	case slices.Contains(judged, c.Name):
		return Abstains
	}
	return NotJudged
}

// A cell that claims more, or less, than what was told is found out.
func TestVerdictsAreDerived(t *testing.T) {
	gc := Class{Kind: model.FindingStraggler, Name: model.ClassHost, Cause: model.CauseGC}
	for _, tc := range []struct {
		class Class
		got   []string
		want  Verdict
	}{
		{gc, []string{"host/gc"}, Decides},
		{gc, []string{"host"}, Bounds},
		{gc, []string{"host/gc", Nobody}, Bounds},
		{gc, []string{"host", "host/gc"}, Bounds},
		{gc, []string{Nobody}, Abstains},
		{Class{Kind: model.FindingStraggler, Name: "node"}, []string{"compute"}, Bounds},
		{Class{Kind: model.FindingStraggler, Name: "node"}, []string{Nobody}, Abstains},
		{Class{Kind: "fabric", Name: "flap"}, []string{Nobody}, NotJudged},
		{Class{Kind: model.FindingStraggler, Name: model.ClassHost}, []string{"host"}, Decides},
		{Class{Kind: model.FindingStraggler, Name: model.ClassHost}, []string{"host/gc"}, Bounds},
	} {
		assert.Equal(t, tc.want, verdictOf(tc.class, tc.got), "%v %v", tc.class, tc.got)
	}
}

// A healthy job of every shape, under every row: nobody is named.
func TestHealthyJobs(t *testing.T) {
	healthy := fault{name: "healthy"}
	for _, s := range Shapes {
		for _, row := range live {
			t.Run(s.Job+"/"+string(row), func(t *testing.T) {
				t.Parallel()
				assert.Equal(t, []string{Nobody}, outcomes(t, row, &healthy, shape(s.Job)))
			})
		}
	}
}

// Where a program repeats one collective and no other, and marks no steps, it has
// none that could be compared: nobody is named, healthy or not.
func TestOneRepeatedCollective(t *testing.T) {
	healthy := fault{name: "healthy"}
	assert.Equal(t, []string{Nobody}, outcomes(t, Scopes, &healthy, repeating))
	for seed := range jobs(t) {
		found, judged := diagnose(t, seen[KernelChannels], healthy, repeating, seed)
		assert.Empty(t, found, "seed %d", seed)
		assert.Zero(t, judged, "seed %d: what makes a step is not known", seed)
	}
}

// Which stage a rank is of, no witness records. Where an attribute says it, a stage that
// has more layers is told.
func TestStagesThatAreSaid(t *testing.T) {
	for row, want := range map[Row]string{HostEvents: Nobody, KernelChannels: model.ClassStageImbalance, CUPTI: model.ClassStageImbalance, Kineto: model.ClassStageImbalance} {
		said := seen[row]
		said.stages = true
		for seed := range jobs(t) {
			f := faultNamed(model.ClassStageImbalance)
			found, _ := diagnose(t, said, *f, pipelined, seed)
			got := Nobody
			if len(found) > 0 {
				got = found[0].class
				assert.True(t, f.placed(&found[0]), "%s, seed %d: %+v", row, seed, found[0])
			}
			assert.Equal(t, want, got, "%s, seed %d", row, seed)
			assert.LessOrEqual(t, len(found), 1, "%s, seed %d: %+v", row, seed, found)
			found, _ = diagnose(t, said, fault{name: "healthy"}, pipelined, seed)
			assert.Empty(t, found, "%s, seed %d: healthy", row, seed)
		}
	}
}

// A rank that is held up in some steps only is named where these are enough.
func TestARankThatIsHeldUpNowAndThen(t *testing.T) {
	f := faultNamed("now and then")
	for _, row := range []Row{KernelChannels, ProxySteps, Scopes, CUPTI} {
		assert.Equal(t, []string{model.ClassHost}, outcomes(t, row, f, reads), row)
	}
	assert.Equal(t, []string{Nobody}, outcomes(t, HostEvents, f, reads))
	assert.Equal(t, []string{Nobody}, outcomes(t, Kineto, f, reads), "ten steps hold it twice")
}

// TestShapes finds out who is named in programs of each shape.
func TestShapes(t *testing.T) {
	for _, s := range Shapes {
		for name, want := range map[string]map[Row][]string{model.ClassCompute: s.Compute, model.ClassHost: s.Host} {
			for _, row := range live {
				if want[row] == nil {
					continue
				}
				t.Run(s.Job+"/"+name+"/"+string(row), func(t *testing.T) {
					t.Parallel()
					holds(t, want[row], outcomes(t, row, faultNamed(name), shape(s.Job)))
				})
			}
		}
	}
}
